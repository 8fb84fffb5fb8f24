// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"

namespace hvd {
namespace {

// Nobody mistypes a word this long; it bounds the table.
constexpr size_t kLongestWord = 64;

bool SameLetter(char a, char b) { return absl::ascii_tolower(a) == absl::ascii_tolower(b); }

}  // namespace

int EditDistance(absl::string_view from, absl::string_view to) {
  const int rows = static_cast<int>(from.size());
  const int columns = static_cast<int>(to.size());
  std::vector<std::vector<int>> cost(rows + 1, std::vector<int>(columns + 1));
  for (int row = 0; row <= rows; ++row) {
    for (int column = 0; column <= columns; ++column) {
      int& best = cost[row][column];
      if (row == 0 || column == 0) {
        best = row + column;
        continue;
      }
      const bool same = SameLetter(from[row - 1], to[column - 1]);
      best = std::min({cost[row - 1][column] + 1, cost[row][column - 1] + 1,
                       cost[row - 1][column - 1] + (same ? 0 : 1)});
      if (row > 1 && column > 1 && SameLetter(from[row - 1], to[column - 2]) &&
          SameLetter(from[row - 2], to[column - 1])) {
        best = std::min(best, cost[row - 2][column - 2] + 1);
      }
    }
  }
  return cost[rows][columns];
}

absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> known) {
  if (word.empty() || word.size() > kLongestWord) return {};
  // Up to a third of the word may be wrong; more is another word.
  int nearest = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  absl::string_view found;
  for (const absl::string_view candidate : known) {
    const int distance = EditDistance(word, candidate);
    if (distance < nearest) {
      nearest = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace hvd
