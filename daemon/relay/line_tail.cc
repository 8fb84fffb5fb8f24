#include "daemon/relay/line_tail.h"

namespace hvd {

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
    open_ = std::string(kCut) + open_.substr(open_.size() - (kMostBytes - kCut.size()));
  }
  while (!lines_.empty() && (lines_.size() > kMostLines || bytes_ + open_.size() > kMostBytes)) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

std::vector<std::string> LineTail::Lines() const {
  std::vector<std::string> lines(lines_.begin(), lines_.end());
  if (!open_.empty()) lines.push_back(open_);
  if (lines.size() > kMostLines) lines.erase(lines.begin());
  return lines;
}

}  // namespace hvd
