// SPDX-License-Identifier: Apache-2.0
// From what was typed to a whole RunOptions: which hosts, who sits where, what is local.
#pragma once

#include "absl/status/statusor.h"
#include "cli/front/words/options.h"
#include "cli/front/world.h"

namespace hvd::cli {

// The hosts come from -H, --hostfile, $HVD_HOSTFILE, the allocation of a scheduler, or are this
// host with np slots. Everything
// that depends on the directory is made absolute, the environment is chosen.
absl::StatusOr<RunOptions> PlanRun(const TypedOptions& typed, const FrontWorld& world);

}  // namespace hvd::cli
