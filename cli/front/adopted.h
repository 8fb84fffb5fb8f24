// SPDX-License-Identifier: Apache-2.0
// A job of ranks that another launcher has started: libhvd in the first of them calls hvdrun and
// says in $HVD_ADOPTION where they are. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/front/words/options.h"
#include "cli/front/world.h"

namespace hvd::cli {

// Whether hvdrun was called so.
bool IsAdoption(const FrontWorld& world);

// Nobody has typed options: those of $HVD_RUN_OPTIONS come before `args`, which are the program.
absl::StatusOr<std::vector<std::string>> WithRunOptions(const FrontWorld& world,
                                                        const std::vector<std::string>& args);

// InvalidArgument: these options are none of a job, or name a program. `program_words`: of the one
// that runs.
absl::Status CheckRunOptions(const TypedOptions& typed, size_t program_words);

// The hosts, and what their ranks keep of their launcher: cores, cards, output, stdin.
// InvalidArgument: the variable is not as libhvd writes it, or the options say what the launcher
// has decided.
absl::Status TakeAdoption(const TypedOptions& typed, const FrontWorld& world, RunOptions* run);

// Its ranks, as the launcher has numbered them. InvalidArgument: as above.
absl::StatusOr<Topology> AdoptedTopology(const Adoption& adoption);

}  // namespace hvd::cli
