// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_lines.h"

#include <algorithm>
#include <utility>

#include "cli/console/bar_block.h"

namespace hvd::cli {
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

void LineAssembler::LeaveBar() {
  in_bar_ = false;
  bar_.clear();
  given_out_.clear();
}

// `line` has its newline. As the end of a bar whose state was given out it adds nothing.
void LineAssembler::EndLine(std::string_view line, std::string* out) {
  const std::string_view text = line.substr(0, line.find_last_not_of("\r\n") + 1);
  if (in_bar_ && !given_out_.empty() && pending_ + std::string(text) == given_out_) {
    pending_.clear();
  } else {
    Emit(line, out);
  }
  LeaveBar();
}

void LineAssembler::EndState(std::string_view rest, std::string* out) {
  if (shown_ > 0) {  // no bar yet when it was shown, so it stays where it is
    Emit(std::string(rest) + "\n", out);
  } else {
    pending_ += rest;
    if (!pending_.empty()) bar_ = IsBlankBar(pending_) ? "" : pending_;
    pending_.clear();
  }
  cut_ = false;
  in_bar_ = true;
}

void LineAssembler::Feed(std::string_view data, std::string* out) {
  if (after_return_ && !data.empty()) {
    after_return_ = false;
    if (data[0] == '\n') {  // the \r was the first half of a line's end
      pending_ = bar_;
      EndLine("\r\n", out);
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
      LeaveBar();
      data.remove_prefix(room);
      continue;
    }
    const bool lone = data[end] == '\r' && (end + 1 == data.size() || data[end + 1] != '\n');
    const size_t length = end + (data[end] == '\r' && !lone ? 2 : 1);
    if (lone) {
      EndState(data.substr(0, end), out);
      after_return_ = length == data.size();
    } else {
      EndLine(data.substr(0, length), out);
    }
    data.remove_prefix(length);
  }
}

const std::string& LineAssembler::bar() const {
  static const std::string kNone;
  if (!in_bar_ || pending_.empty()) return bar_;
  if (!IsBlankBar(pending_)) return pending_;
  return pending_.find('\033') == pending_.npos ? bar_ : kNone;  // blanks are written over it yet
}

void LineAssembler::GiveOut(const std::string& state, std::string* out) {
  prefix_(out);
  *out += state;
  *out += '\n';
  given_out_ = state;
}

void LineAssembler::Show(std::string* out) {
  if (!has_unshown()) return;
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
  if (in_bar_) {
    pending_ = bar();
    if (!pending_.empty()) EndLine("\n", out);
  } else if (!pending_.empty() || shown_ > 0) {
    Emit("\n", out);
  }
  LeaveBar();
  after_return_ = false;
}

}  // namespace hvd::cli
