// SPDX-License-Identifier: Apache-2.0
#include "base/source_error.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"

namespace hvd {
namespace {

// A terminal's width or so: longer lines are shown around the caret only.
constexpr size_t kShownBefore = 60;
constexpr size_t kShownAfter = 36;
constexpr size_t kQuotedLength = 60;

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// How many characters (UTF-8) the bytes make, so that the caret stands under the right one.
size_t CountCharacters(absl::string_view bytes) {
  return bytes.size() - std::count_if(bytes.begin(), bytes.end(), IsContinuation);
}

// Tabs stay, since the caret follows them.
std::string PrintableWithTabs(absl::string_view bytes) {
  std::string out;
  for (const absl::string_view piece : absl::StrSplit(bytes, '\t')) {
    absl::StrAppend(&out, piece.data() == bytes.data() ? "" : "\t",
                    Printable({piece.data(), piece.size()}));
  }
  return out;
}

}  // namespace

std::string ShowWithCaret(absl::string_view line, size_t offset) {
  size_t from = offset > kShownBefore ? offset - kShownBefore : 0;
  while (from > 0 && from < line.size() && IsContinuation(line[from])) --from;
  size_t to = std::min(line.size(), offset + kShownAfter);
  while (to < line.size() && IsContinuation(line[to])) ++to;
  const std::string before = PrintableWithTabs(line.substr(from, offset - from));
  std::string padding;
  for (const char byte : before) {
    if (!IsContinuation(byte)) padding += byte == '\t' ? '\t' : ' ';
  }
  const absl::string_view head = from > 0 ? "..." : "";
  return absl::StrCat("  ", head, before, PrintableWithTabs(line.substr(offset, to - offset)),
                      to < line.size() ? "..." : "", "\n  ", std::string(head.size(), ' '), padding,
                      "^");
}

size_t SourceLine::OffsetOf(absl::string_view piece) const {
  const size_t offset = static_cast<size_t>(piece.data() - text_.data());
  return std::min(offset, shown_.size());
}

std::string SourceLine::Place() const { return absl::StrCat(source_, ":", number_); }

std::string SourceLine::PlaceOf(absl::string_view piece) const {
  return absl::StrCat(Place(), ":", CountCharacters(shown_.substr(0, OffsetOf(piece))) + 1);
}

absl::Status SourceLine::ErrorAt(absl::string_view piece, absl::string_view message,
                                 absl::string_view hint) const {
  return absl::InvalidArgumentError(absl::StrCat(PlaceOf(piece), ": ", message, "\n",
                                                 ShowWithCaret(shown_, OffsetOf(piece)),
                                                 hint.empty() ? "" : "\n  ", hint));
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", Printable({text.data(), text.size()}, kQuotedLength), "\"");
}

}  // namespace hvd
