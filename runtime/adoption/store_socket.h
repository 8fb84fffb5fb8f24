// SPDX-License-Identifier: Apache-2.0
// Bytes to and from a launcher, never waited for longer than until a given time. Other users of the
// same socket may want it to block, so its flags stay as they are. Any thread.
//
// DeadlineExceeded: the time has come. Unavailable: the other side has hung up, or the system's
// words. Both speak of "it": the caller says what that is.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"

namespace hvd::rt {

// Waits until `events` of poll have come.
absl::Status AwaitSocket(int socket, short events, TimePoint until);

// Sends all of them.
absl::Status SendUntil(int socket, absl::string_view bytes, TimePoint until);

// Appends what comes, one byte at least, and `most` at most.
absl::Status ReceiveUntil(int socket, size_t most, TimePoint until, std::string* came);

}  // namespace hvd::rt
