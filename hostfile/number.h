// SPDX-License-Identifier: Apache-2.0
// Bounded whole numbers of the host grammar, with errors that point at them.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/source_error.h"

namespace hvd {

struct NumberRule {
  absl::string_view what;  // "slots", for messages
  int most = 0;            // the least is 1
};

// `text` must lie in line.text().
absl::StatusOr<int> ParseNumber(const SourceLine& line, absl::string_view text,
                                const NumberRule& rule);

}  // namespace hvd
