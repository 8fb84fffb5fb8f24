// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/line_tail.h"

#include <algorithm>

namespace hvd::daemon {

void LineTail::Take(std::string_view data) {
  while (!data.empty()) {
    const size_t end = data.find('\n');
    open_ += data.substr(0, end);
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
    bytes_ += open_.size();
    lines_.push_back(std::move(open_));
    open_.clear();
    Trim();
  }
  Trim();
}

void LineTail::Trim() {
  if (open_.size() > kMostBytes) {
    constexpr std::string_view kCut = "…";
    open_ =
        std::string(kCut) + open_.substr(CharacterFrom(open_.size() - (kMostBytes - kCut.size())));
  }
  while (!lines_.empty() && (lines_.size() > kMostLines || bytes_ + open_.size() > kMostBytes)) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

// Where the first UTF-8 character of open_ that does not begin before `at` begins.
size_t LineTail::CharacterFrom(size_t at) const {
  constexpr size_t kMostContinuations = 3;
  const size_t end = std::min(at + kMostContinuations, open_.size());
  while (at < end && (static_cast<unsigned char>(open_[at]) & 0xc0) == 0x80) ++at;
  return at;
}

std::vector<std::string> LineTail::Lines() const {
  std::vector<std::string> lines(lines_.begin(), lines_.end());
  if (!open_.empty()) lines.push_back(open_);
  if (lines.size() > kMostLines) lines.erase(lines.begin());
  return lines;
}

}  // namespace hvd::daemon
