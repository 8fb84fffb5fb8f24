// SPDX-License-Identifier: Apache-2.0
// The identity of this process, from its environment. Pure.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "proto/hello.h"
#include "proto/settings/environment.h"

namespace hvd::rt {

// The link to the daemon; nothing when no launcher started this process, or HVD_STANDALONE is 1
// (then it is a job of one rank). FailedPrecondition when the environment is half a launcher's
// (HVD_RANK without HVD_LINK), or another launcher has started several: never a silent size of one.
absl::StatusOr<std::optional<LinkName>> FindLink(const EnvironmentLookup& environment);

}  // namespace hvd::rt
