// SPDX-License-Identifier: Apache-2.0
#include "cli/console/bar_block.h"

#include <algorithm>

namespace hvd::cli {
namespace {

constexpr char kEscape = '\033';
constexpr std::string_view kEraseBelow = "\r\033[J";
constexpr std::string_view kEraseRow = "\r\033[K";
constexpr std::string_view kWrapOff = "\033[?7l";
constexpr std::string_view kWrapOn = "\033[?7h";

// How long the escape sequence at the beginning of `text` is.
size_t SequenceLength(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    const auto last = std::find_if(text.begin() + 2, text.end(), [](char c) { return c >= '@'; });
    return last == text.end() ? text.size() : last - text.begin() + 1;
  }
  if (text[1] != ']') return 2;
  const size_t bell = text.find('\a');
  const size_t end = text.find("\033\\", 2);
  return std::min(
      {bell == text.npos ? bell : bell + 1, end == text.npos ? end : end + 2, text.size()});
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

}  // namespace

std::string BarRow(std::string_view text) {
  std::string row;
  bool colored = false;
  while (!text.empty()) {
    const size_t length = text[0] == kEscape ? SequenceLength(text) : 1;
    const std::string_view part = text.substr(0, length);
    const bool color = length > 2 && part[1] == '[' && part.back() == 'm';
    colored = colored || color;
    if (color || part == "\t" || !IsControl(part[0])) row += part;
    text.remove_prefix(length);
  }
  if (colored) row += "\033[0m";
  return row;
}

bool IsBlankBar(std::string_view text) {
  while (!text.empty()) {
    if (text[0] != kEscape && text[0] != ' ' && !IsControl(text[0])) return false;
    text.remove_prefix(text[0] == kEscape ? SequenceLength(text) : 1);
  }
  return true;
}

void BarBlock::Return(std::string* out) const {
  for (size_t row = 1; row < rows_; ++row) *out += "\033[A";
}

void BarBlock::Erase(std::string* out) {
  if (rows_ == 0) return;
  Return(out);
  *out += kEraseBelow;
  rows_ = 0;
}

void BarBlock::Draw(const std::vector<std::string>& rows, std::string* out) {
  if (rows.size() < rows_) Erase(out);
  if (rows.empty()) return;
  Return(out);
  *out += kWrapOff;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) *out += "\r\n";
    *out += kEraseRow;
    *out += rows[i];
  }
  *out += kWrapOn;
  rows_ = rows.size();
}

}  // namespace hvd::cli
