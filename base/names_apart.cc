// SPDX-License-Identifier: Apache-2.0
#include "base/names_apart.h"

#include <algorithm>
#include <string_view>

#include "base/printable.h"

namespace hvd {
namespace {

constexpr size_t kShownWhole = 120;  // bytes: as ShownName
constexpr size_t kBeginning = 40;    // of a name that is cut
constexpr size_t kDiffering = 70;    // of what differs, and some before it
constexpr size_t kBefore = 20;

size_t CommonBytes(std::string_view a, std::string_view b) {
  const auto at = std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin());
  return static_cast<size_t>(at.first - a.begin());
}

// Back to where a character of UTF-8 begins.
size_t CharacterAt(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && (text[at] & 0xc0) == 0x80) --at;
  return at;
}

std::string Shown(const std::string& name, size_t common) {
  if (name.size() <= kShownWhole || common < kShownWhole) return ShownName(name);
  const size_t begin = CharacterAt(name, kBeginning), from = CharacterAt(name, common - kBefore);
  const size_t end = CharacterAt(name, std::min(from + kDiffering, name.size()));
  std::string text = ShownName(std::string_view(name).substr(0, begin));
  text.pop_back();
  return text + "..." + Printable(std::string_view(name).substr(from, end - from)) +
         (end < name.size() ? "...'" : "'");
}

}  // namespace

// In their order each begins most alike with one of its neighbours.
std::vector<std::string> ShownApart(const std::vector<std::string>& names) {
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), name);
    size_t common = 0;
    if (at != sorted.begin()) common = CommonBytes(name, *(at - 1));
    if (at + 1 != sorted.end()) common = std::max(common, CommonBytes(name, *(at + 1)));
    shown.push_back(Shown(name, common));
  }
  return shown;
}

}  // namespace hvd
