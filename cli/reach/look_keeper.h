// SPDX-License-Identifier: Apache-2.0
// The process between the spawner and a command that prints the hosts. It is the reaper of whatever
// the command starts, in whichever session, and ends all of it: when the command has ended, when
// the spawner asks (SIGTERM) and when the spawner dies.
#pragma once

#include <sys/types.h>

#include "cli/reach/execute.h"

namespace hvd::cli {

// Runs in a fresh child of `spawner`, which is single-threaded. Ends as the command has ended, but
// not before everything that it has started is gone.
[[noreturn]] void KeepLook(const Execution& command, pid_t spawner);

}  // namespace hvd::cli
