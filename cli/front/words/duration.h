// SPDX-License-Identifier: Apache-2.0
// Times as people type them: "30", "30s", "2m", "1.5h", "500ms", "1h30m".
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hvd::cli {

// Seconds; a bare number means seconds. Never negative, never more than a year.
absl::StatusOr<double> ParseDuration(const std::string& text);

}  // namespace hvd::cli
