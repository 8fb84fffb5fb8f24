// SPDX-License-Identifier: Apache-2.0
// How two hvdds that share a secret know one another over a connection that anybody could have
// made: each proves by HMAC over both sides' random words that it knows the secret. One side also
// says which command the other is to become.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace hvd::daemon {

// The least that a secret has, in bytes.
inline constexpr size_t kLeastDialSecret = 16;
inline constexpr size_t kMostDialCommand = size_t{32} * 1024;

// The side that has called. `socket` blocks not; both return by `until`.
absl::Status ProveAndAsk(int socket, const std::string& secret, const std::string& command,
                         TimePoint until);
// The side that was called; returns the command.
absl::StatusOr<std::string> ProveAndHear(int socket, const std::string& secret, TimePoint until);

}  // namespace hvd::daemon
