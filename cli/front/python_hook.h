// SPDX-License-Identifier: Apache-2.0
// --compat horovod: every Python that a rank starts finds hvd where it asks for horovod, with no
// change to the program or its command.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/front/words/run_options.h"
#include "cli/front/world.h"

namespace hvd::cli {

// Puts the folder with our sitecustomize.py first in the workers' PYTHONPATH (also where -x has set
// it). InvalidArgument when hvd's Python package is not where this hvdrun looks for it.
absl::Status AddPythonHook(const FrontWorld& world, RunOptions* run);

// hvd's Python package beside this hvdrun; empty when there is none.
std::string PythonPackage(const FrontWorld& world);

}  // namespace hvd::cli
