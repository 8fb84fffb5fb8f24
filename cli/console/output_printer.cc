// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_printer.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace hvd {
namespace {

constexpr double kNotSeen = -1;
constexpr std::string_view kEraseLine = "\r\033[K";

// Local time as "2026-11-21 04:05:06.789 ".
std::string TimeWords() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts;
  localtime_r(&now.tv_sec, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return absl::StrFormat("%s.%03d ", text, now.tv_nsec / 1000000);
}

}  // namespace

void OutputPrinter::Name(int index, int rank, std::string host) {
  names_[index] = {rank, std::move(host)};
}

bool OutputPrinter::Knows(int index) const {
  return names_.count(index) != 0 || (index >= 0 && index < topology_->size());
}

void OutputPrinter::AppendPrefix(StreamId id, std::string* out) const {
  const auto [index, is_stderr] = id;
  const auto named = names_.find(index);
  const int rank = named == names_.end() ? index : named->second.rank;
  if (style_.timestamps) *out += TimeWords();
  if (!style_.terminal) {
    absl::StrAppend(out, "[", rank, is_stderr ? "]<stderr>:" : "]<stdout>:");
    return;
  }
  // Neighbouring ranks differ in colour; 31 (red) is left for errors.
  static constexpr int kColors[] = {36, 32, 33, 35, 34, 96, 92, 93, 95, 94};
  const std::string& host = named == names_.end()
                                ? topology_->hosts()[topology_->place(rank).host].name
                                : named->second.host;
  if (style_.color) absl::StrAppend(out, "\033[", is_stderr ? 31 : kColors[rank % 10], "m");
  absl::StrAppend(out, host, ":", rank, "|", style_.color ? "\033[0m " : " ");
}

LineAssembler& OutputPrinter::Stream(StreamId id) {
  const auto found = streams_.find(id);
  if (found != streams_.end()) return found->second;
  return streams_
      .emplace(id, LineAssembler([this, id](std::string* out) { AppendPrefix(id, out); }))
      .first->second;
}

void OutputPrinter::LeaveLine(StreamId next) {
  if (std::exchange(status_drawn_, false)) pending_ += kEraseLine;
  if (open_line_ && last_ != next) {
    pending_ += '\n';
    if (last_.first >= 0) Stream(last_).ReturnEnded();
  }
  open_line_ = false;
  last_ = next;
}

void OutputPrinter::CutLine() {
  if (!shown_) return;
  pending_ += '\n';
  Stream(*shown_).Cut();
  shown_.reset();
}

void OutputPrinter::Print(int index, bool is_stderr, std::string_view data, bool end) {
  if (!Knows(index)) return;
  const StreamId id(index, is_stderr);
  std::string lines;
  LineAssembler& stream = Stream(id);
  stream.Feed(data, &lines);
  if (end) stream.Finish(&lines);
  if (!stream.has_unshown()) {
    unfinished_.erase(id);
  } else if (!lines.empty() || unfinished_.count(id) == 0) {
    unfinished_[id] = kNotSeen;
  }
  if (lines.empty()) return;
  if (shown_ == id) shown_.reset();  // these are its end
  CutLine();
  LeaveLine(id);
  pending_ += lines;
  open_line_ = lines.back() == '\r';
}

void OutputPrinter::Skipped(int index, bool is_stderr, uint64_t lines) {
  if (!Knows(index)) return;
  const StreamId id(index, is_stderr);
  CutLine();
  LeaveLine(id);
  AppendPrefix(id, &pending_);
  absl::StrAppend(&pending_, "[", lines, " lines are only in this rank's file]\n");
}

void OutputPrinter::Say(std::string_view lines, Tone tone) {
  if (lines.empty()) return;
  CutLine();
  LeaveLine({-1, true});
  const std::string shown = PrintableLines(lines);
  pending_ += style_.color ? ColorWords(shown, tone) : shown;
}

void OutputPrinter::ShowStatus(std::string_view line) {
  const bool drawable = style_.redraws && !line.empty() && !open_line_ && !shown_;
  if (!drawable) {
    if (std::exchange(status_drawn_, false)) pending_ += kEraseLine;
    return;
  }
  absl::StrAppend(&pending_, "\r", std::string(line), "\033[K");
  status_drawn_ = true;
}

double OutputPrinter::ShowUnfinished(double now) {
  double next = std::numeric_limits<double>::infinity();
  for (auto waiting = unfinished_.begin(); waiting != unfinished_.end();) {
    auto& [id, since] = *waiting;
    if (since == kNotSeen) since = now;
    if (now < since + kShowAfterS) {
      next = std::min(next, since + kShowAfterS);
      ++waiting;
      continue;
    }
    if (shown_ != id) CutLine();
    LeaveLine(id);
    Stream(id).Show(&pending_);
    shown_ = id;
    waiting = unfinished_.erase(waiting);
  }
  return next;
}

void OutputPrinter::WaitAnew() {
  for (auto& [id, since] : unfinished_) since = kNotSeen;
}

void OutputPrinter::EnterPressed() {
  if (!shown_ || !style_.terminal) return;
  Stream(*shown_).EndedByOthers();
  shown_.reset();
}

void OutputPrinter::Written(size_t bytes) {
  written_ += bytes;
  if (written_ < pending_.size() && written_ < (1 << 20)) return;
  pending_.erase(0, written_);
  written_ = 0;
}

}  // namespace hvd
