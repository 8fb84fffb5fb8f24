// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace hvd {
namespace {

constexpr size_t kMostShownName = 120;
// The bytes that the names of hvd's own calls begin with (runtime/engine/request/request.h); users'
// do not.
constexpr char kOwnName = '\x01', kPartName = '\x02';

unsigned Byte(std::string_view bytes, size_t i) { return static_cast<unsigned char>(bytes[i]); }

// Length of the well-formed sequence that `bytes` begin with; 0: there is none.
size_t SequenceLength(std::string_view bytes) {
  const unsigned first = Byte(bytes, 0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((Byte(bytes, i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = Byte(bytes, 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : length;
}

uint32_t CodeOf(std::string_view sequence) {
  uint32_t code = Byte(sequence, 0);
  if (sequence.size() > 1) code &= 0x7f >> sequence.size();
  for (size_t i = 1; i < sequence.size(); ++i) code = code << 6 | (Byte(sequence, i) & 0x3f);
  return code;
}

bool IsHarmless(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool separator = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x61c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !control && !separator && !direction;
}

std::string Escaped(const Character& one) {
  if (!one.well_formed) return absl::StrFormat("\\x%02x", Byte(one.bytes, 0));
  if (one.code == '\n') return "\\n";
  if (one.code == '\r') return "\\r";
  if (one.code == '\t') return "\\t";
  return one.code < 0x80 ? absl::StrFormat("\\x%02x", one.code)
                         : absl::StrFormat("\\u%04x", one.code);
}

// The first `most` bytes; at most three of a character are left out, and none is cut.
std::string_view Head(std::string_view text, size_t most) {
  size_t end = most;
  while (end > 0 && end + 3 > most && (Byte(text, end) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::string Clean(std::string_view foreign, size_t most, bool keep_lines) {
  const bool cut = foreign.size() > most;
  if (cut) foreign = Head(foreign, most);
  std::string clean;
  clean.reserve(foreign.size());
  while (!foreign.empty()) {
    const Character one = TakeCharacter(&foreign);
    const bool kept = keep_lines && (one.code == '\n' || one.code == '\t');
    if (one.printable || kept) {
      clean += one.bytes;
    } else {
      clean += Escaped(one);
    }
  }
  if (cut) clean += "...";
  return clean;
}

}  // namespace

Character TakeCharacter(std::string_view* text) {
  const size_t length = SequenceLength(*text);
  Character one;
  one.bytes = text->substr(0, std::max<size_t>(length, 1));
  one.well_formed = length != 0;
  if (one.well_formed) one.code = CodeOf(one.bytes);
  one.printable = one.well_formed && IsHarmless(one.code);
  text->remove_prefix(one.bytes.size());
  return one;
}

std::string Printable(std::string_view foreign, size_t most) {
  return Clean(foreign, most, /*keep_lines=*/false);
}

std::string PrintableLines(std::string_view foreign, size_t most) {
  return Clean(foreign, most, /*keep_lines=*/true);
}

std::string ShownName(std::string_view name) {
  while (!name.empty() && (name[0] == kOwnName || name[0] == kPartName)) name.remove_prefix(1);
  return "'" + Printable(name, kMostShownName) + "'";
}

}  // namespace hvd
