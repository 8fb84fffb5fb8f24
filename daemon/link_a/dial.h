// SPDX-License-Identifier: Apache-2.0
// hvdd --dial: the remote shell of hosts on which a rank has an hvdd --await wait.
#pragma once

#include <string>

namespace hvd::daemon {

// Has the host that $HVD_ADOPTION names run `command`, and carries its stdin and stdout until one
// side ends. Returns an exit code; why it is not 0 is said on stderr.
int Dial(const std::string& host, const std::string& command);

}  // namespace hvd::daemon
