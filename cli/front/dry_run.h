// SPDX-License-Identifier: Apache-2.0
// --dry-run: the plan as a table.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/front/words/run_options.h"
#include "cli/front/world.h"

namespace hvd::cli {

// Cores and GPUs are known for this machine only; "-" stands for what is not known, or not there.
// FailedPrecondition: this machine has fewer GPUs than the plan needs.
absl::StatusOr<std::string> FormatPlan(const RunOptions& options, const FrontWorld& world);

}  // namespace hvd::cli
