// SPDX-License-Identifier: Apache-2.0
// The console: the process that the shell sees. It owns the terminal, the signals, stdin and our
// output, and nothing of the job: Ctrl-Z stops it alone.
#pragma once

#include <sys/types.h>

#include "base/descriptor.h"
#include "cli/front/words/run_options.h"

namespace hvd::cli {

// Runs until the driver says the verdict or is gone. Returns hvdrun's exit code.
int RunConsole(const RunOptions& options, Descriptor driver, pid_t driver_pid);

}  // namespace hvd::cli
