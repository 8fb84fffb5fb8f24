// SPDX-License-Identifier: Apache-2.0
// Who this process is, from its environment. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/hello.h"

namespace hvd {

// Looks an environment variable up; null when it is not set.
using EnvironmentLookup = std::function<const char*(const char*)>;

// The link to the daemon; nothing when no launcher started this process (then it is a job of one
// rank). FailedPrecondition when the environment is half a launcher's: HVD_RANK without HVD_LINK is
// never a silent size of one.
absl::StatusOr<std::optional<LinkName>> FindLink(const EnvironmentLookup& environment);

}  // namespace hvd
