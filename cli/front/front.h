// SPDX-License-Identifier: Apache-2.0
// The front of hvdrun: from a command line to "print this and exit" or "run that". Pure, given a
// FrontWorld.
#pragma once

#include <string>

#include "cli/front/words/run_options.h"
#include "cli/front/world.h"

namespace hvd::cli {

struct FrontOutcome {
  int exit_code = -1;  // 0 or more: exit with it; -1: run `options`
  std::string out;     // both are printed first
  std::string err;
  RunOptions options;
};

FrontOutcome DecideRun(int argc, const char* const* argv, const FrontWorld& world);

}  // namespace hvd::cli
