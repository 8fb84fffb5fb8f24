// SPDX-License-Identifier: Apache-2.0
// How many tasks Slurm has on each node, as its variables write it: "2(x3),1". Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd {

// A number a node. InvalidArgument names the variable (`source`) and what is wrong in the text.
absl::StatusOr<std::vector<int>> ParseTasksPerNode(absl::string_view text,
                                                   absl::string_view source);

}  // namespace hvd
