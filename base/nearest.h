// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known word that is nearest to what was typed.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hvd {

// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
// Letters that differ only in case count as the same.
int EditDistance(absl::string_view from, absl::string_view to);

// The nearest of `known`, the first of equals; empty when none is near enough to be a typo.
absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> known);

}  // namespace hvd
