// SPDX-License-Identifier: Apache-2.0
// Options that are given elsewhere than in the command line, which beats them: in horovodrun's
// config file, and in HOROVOD_START_TIMEOUT.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/front/words/options.h"
#include "cli/front/world.h"

namespace hvd::cli {

// Returns the options that `typed` and the environment name, checked; InvalidArgument points at
// what is wrong.
absl::StatusOr<std::vector<BorrowedOption>> BorrowOptions(const TypedOptions& typed,
                                                          const FrontWorld& world);

}  // namespace hvd::cli
