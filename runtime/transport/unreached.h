// SPDX-License-Identifier: Apache-2.0
// Which rank an error of a transport is about: the status carries its number, which no text says
// for sure.
#pragma once

#include "absl/status/status.h"

namespace hvd::rt {

// `why`, of what was to go to `rank` (of the job) or to come from it.
absl::Status Unreached(absl::Status why, int rank);

// -1: it names none.
int UnreachedBy(const absl::Status& why);

}  // namespace hvd::rt
