// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_lines.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

constexpr std::string_view kSplitMark = " [line goes on]\n";

}  // namespace

void LineAssembler::Emit(std::string_view line, std::string* out) {
  const bool ended = std::exchange(cut_, false) && pending_.empty();
  if (!ended || (line != "\n" && line != "\r\n")) {
    if (shown_ == 0) prefix_(out);
    out->append(pending_);
    out->append(line);
  }
  pending_.clear();
  shown_ = 0;
}

void LineAssembler::Feed(std::string_view data, std::string* out) {
  if (after_return_ && !data.empty()) {
    after_return_ = false;
    const bool ended = std::exchange(return_ended_, false);
    if (data[0] == '\n') {
      if (!ended) *out += '\n';
      data.remove_prefix(1);
    }
  }
  while (!data.empty()) {
    const size_t room = kMaxLine - shown_ - pending_.size();
    const size_t end = data.substr(0, room).find_first_of("\r\n");
    if (end == data.npos && data.size() < room) {
      pending_.append(data);
      return;
    }
    if (end == data.npos) {
      Emit(data.substr(0, room), out);
      out->append(kSplitMark);
      data.remove_prefix(room);
      continue;
    }
    // Where a bar begins, and nothing stands that it would go back over.
    if (end == 0 && data[0] == '\r' && pending_.empty() && shown_ == 0 && !cut_ &&
        (data.size() == 1 || data[1] != '\n')) {
      data.remove_prefix(1);
      continue;
    }
    const bool pair = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
    Emit(data.substr(0, end + (pair ? 2 : 1)), out);
    after_return_ = data[end] == '\r' && end + 1 == data.size();
    data.remove_prefix(end + (pair ? 2 : 1));
  }
}

void LineAssembler::Show(std::string* out) {
  if (pending_.empty()) return;
  if (shown_ == 0) prefix_(out);
  out->append(pending_);
  shown_ += pending_.size();
  pending_.clear();
  cut_ = false;
}

void LineAssembler::Cut() {
  shown_ = 0;
  cut_ = true;
}

void LineAssembler::EndedByOthers() { shown_ = 0; }

void LineAssembler::Finish(std::string* out) {
  if (!pending_.empty() || shown_ > 0) {
    Emit("\n", out);
  } else if (after_return_ && !return_ended_) {
    *out += '\n';
  }
  after_return_ = return_ended_ = false;
}

}  // namespace hvd
