// SPDX-License-Identifier: Apache-2.0
// horovodrun's config file (YAML) → options. The only place that sees yaml-cpp.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/front/words/options.h"

namespace hvd::cli {

// `source` names the file in messages. InvalidArgument has file, line, column and a caret.
absl::StatusOr<std::vector<BorrowedOption>> ReadHorovodConfig(const std::string& text,
                                                              const std::string& source);

}  // namespace hvd::cli
