// SPDX-License-Identifier: Apache-2.0
// The connection of link A out of hvdd's own stdin and stdout.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace hvd::daemon {

// Writes `hello` to stdout and turns stdin and stdout into one stream socket: the same one if they
// are a socket already, else one end of a pair with a pump thread each way (sshd hands out pipes).
// 0 and 1 become /dev/null. The pumps live as long as the process.
absl::StatusOr<Descriptor> TakeConnection(std::string_view hello);

}  // namespace hvd::daemon
