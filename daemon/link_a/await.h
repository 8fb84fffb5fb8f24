// SPDX-License-Identifier: Apache-2.0
// hvdd --await: where a rank that another launcher has started needs the daemon of its host. It
// waits at a TCP port for one caller who knows the secret, and becomes what that one says: hvdd,
// with the connection as its stdin and stdout.
#pragma once

namespace hvd::daemon {

// stdout: gets one line "PORT ADDRESS,…", then, once somebody has called, "called"; stdin: its end
// is the end of the rank, and of this. Returns an exit code, or does not return.
int AwaitCall(int patience_s);

}  // namespace hvd::daemon
