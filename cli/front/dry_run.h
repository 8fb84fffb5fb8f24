// --dry-run: the plan as a table.
#pragma once

#include <string>

#include "cli/front/words/run_options.h"
#include "cli/front/world.h"

namespace hvd {

// Cores and GPUs are known for this machine only; "-" stands for what is not known.
std::string FormatPlan(const RunOptions& options, const FrontWorld& world);

}  // namespace hvd
