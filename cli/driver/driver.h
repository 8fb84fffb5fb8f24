// SPDX-License-Identifier: Apache-2.0
// The driver: gRPC, epochs and the verdict, in a session of its own so that the terminal does not
// own the job. Its one loop carries out what driver_state decides.
#pragma once

#include "base/descriptor.h"
#include "cli/driver/launch.h"
#include "cli/front/words/run_options.h"
#include "cli/reach/ssh_command.h"

namespace hvd::cli {

struct DriverSetup {
  const RunOptions* options = nullptr;
  JobSecrets secrets;
  LauncherLimits limits;
  DaemonStart start;
  bool shows_status = false;  // the console has a terminal for it
  Descriptor console;
  Descriptor spawner;
  Descriptor term;  // of TakeTerm; may be none
};

// Raises this process's limit of open files: setup.limits are the person's own. Ends the process
// when the verdict has gone to the console, or when nobody is left to hear it: taking gRPC down in
// order would cost milliseconds and wait for hosts that may be gone.
[[noreturn]] void RunDriver(DriverSetup setup);

}  // namespace hvd::cli
