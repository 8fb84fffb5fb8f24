#include "cli/output_lines.h"

#include <algorithm>

namespace hvd {
namespace {

constexpr std::string_view kSplitMark = " [line goes on]\n";

}  // namespace

void LineAssembler::Emit(std::string_view line, std::string* out) {
  prefix_(out);
  out->append(pending_);
  out->append(line);
  pending_.clear();
}

void LineAssembler::Feed(std::string_view data, std::string* out) {
  if (after_return_ && !data.empty()) {
    after_return_ = false;
    if (data[0] == '\n') {
      *out += '\n';
      data.remove_prefix(1);
    }
  }
  while (!data.empty()) {
    const size_t room = kMaxLine - pending_.size();
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
    const bool pair = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
    Emit(data.substr(0, end + (pair ? 2 : 1)), out);
    after_return_ = data[end] == '\r' && end + 1 == data.size();
    data.remove_prefix(end + (pair ? 2 : 1));
  }
}

void LineAssembler::Finish(std::string* out) {
  if (!pending_.empty()) Emit("\n", out);
  after_return_ = false;
}

}  // namespace hvd
