// SPDX-License-Identifier: Apache-2.0
// Nodesets: "node[01-04,7]", "dc[1-2]n[1-9/2]" → the host names that they stand for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/source_error.h"

namespace hvd {

// More hosts than this in one job are refused.
inline constexpr int kMaxHosts = 16384;
// DNS's limit.
inline constexpr size_t kMaxNameLength = 253;

// The names in order, the last bracket counting fastest, each name once. A name without brackets
// stands for itself. `name` must lie in line.text(); errors point into it.
absl::StatusOr<std::vector<std::string>> ExpandNodeset(const SourceLine& line,
                                                       absl::string_view name);

}  // namespace hvd
