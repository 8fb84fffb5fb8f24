// SPDX-License-Identifier: Apache-2.0
// Why a look for the hosts has failed, in words. Pure.
#pragma once

#include <string>

#include "cli/link/frame.h"

namespace hvd::cli {

struct FailedLook {
  LookEnd end = LookEnd::kEnded;
  int wait_status = 0;
  std::string last_words;  // of its stderr
  double bound_s = 0;      // how long it had
};

// Explains a failed look by a script, which is a command line for the shell.
std::string ExplainScript(const std::string& script, const FailedLook& look);
// Explains a failed look at what a manager ("Slurm job 7") says of its job.
std::string ExplainManager(const std::string& manager, const FailedLook& look);
// Explains a failed look at the hostfile at this path.
std::string ExplainHostfile(const std::string& path, const FailedLook& look);

}  // namespace hvd::cli
