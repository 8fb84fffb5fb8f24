// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_printer.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace hvd::cli {
namespace {

constexpr double kNotSeen = -1;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kDrawEveryS = 0.05;
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

void OutputPrinter::ClearBelow() {
  if (std::exchange(status_drawn_, false)) pending_ += kEraseLine;
  if (!block_.drawn()) return;
  block_.Erase(&pending_);
  block_changed_ = true;
  drawn_at_ = 0;
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
  NoteBar(id);
  if (!stream.has_unshown()) {
    unfinished_.erase(id);
  } else if (!lines.empty() || unfinished_.count(id) == 0) {
    unfinished_[id] = kNotSeen;
  }
  if (lines.empty()) return;
  if (shown_ == id) shown_.reset();  // these are its end
  CutLine();
  ClearBelow();
  pending_ += lines;
}

void OutputPrinter::NoteBar(StreamId id) {
  const std::string& newest = Stream(id).bar();
  const auto known = bars_.find(id);
  if (known == bars_.end() && newest.empty()) return;
  Bar& bar = known != bars_.end() ? known->second : bars_[id];
  if (bar.newest == newest) return;
  bar.newest = newest;
  bar.changed_at = kNotSeen;
  bars_changed_ = true;
}

void OutputPrinter::Skipped(int index, bool is_stderr, uint64_t lines) {
  if (!Knows(index)) return;
  CutLine();
  ClearBelow();
  AppendPrefix({index, is_stderr}, &pending_);
  absl::StrAppend(&pending_, "[", lines, " lines are only in this rank's file]\n");
}

void OutputPrinter::Say(std::string_view lines, Tone tone) {
  if (lines.empty()) return;
  CutLine();
  ClearBelow();
  const std::string shown =
      absl::StrCat(style_.timestamps ? TimeWords() : "", PrintableLines(lines));
  pending_ += style_.color ? ColorWords(shown, tone) : shown;
}

void OutputPrinter::ShowStatus(std::string_view line) {
  const bool drawable = style_.redraws && !line.empty() && !block_.drawn() && !shown_;
  if (!drawable) {
    if (std::exchange(status_drawn_, false)) pending_ += kEraseLine;
    return;
  }
  absl::StrAppend(&pending_, "\r", std::string(line), "\033[K");
  status_drawn_ = true;
}

double OutputPrinter::ShowUnfinished(double now) {
  const double prompts = ShowPrompts(now);
  return std::min(prompts, style_.redraws ? DrawBars(now) : GiveOutBars(now));
}

double OutputPrinter::ShowPrompts(double now) {
  double next = kNever;
  for (auto waiting = unfinished_.begin(); waiting != unfinished_.end();) {
    auto& [id, since] = *waiting;
    if (since == kNotSeen) since = now;
    if (now < since + kShowAfterS) {
      next = std::min(next, since + kShowAfterS);
      ++waiting;
      continue;
    }
    if (shown_ != id) CutLine();
    ClearBelow();
    Stream(id).Show(&pending_);
    shown_ = id;
    waiting = unfinished_.erase(waiting);
  }
  return next;
}

// A state that another has followed is whole; the newest is, when nothing has come for a while.
double OutputPrinter::GiveOutBars(double now) {
  double next = kNever;
  for (auto& [id, bar] : bars_) {
    LineAssembler& stream = Stream(id);
    if (bar.changed_at == kNotSeen) bar.changed_at = now;
    const double whole_at = bar.changed_at + kShowAfterS;
    const std::string state = now >= whole_at ? stream.bar() : stream.ended_bar();
    const bool due = now >= bar.given_out_at + kBarEveryS;
    if (due && !state.empty() && !stream.is_given_out(state)) {
      CutLine();
      stream.GiveOut(state, &pending_);
      bar.given_out_at = now;
    }
    if (stream.bar().empty() || stream.is_given_out(stream.bar())) continue;
    next = std::min(next, std::max(bar.given_out_at + kBarEveryS, whole_at));
  }
  return next;
}

double OutputPrinter::DrawBars(double now) {
  // Below a prompt only for news: a person may be about to answer it.
  if (!bars_changed_ && (!block_changed_ || shown_)) return kNever;
  if (rows_ == 0) return now + kShowAfterS;
  if (now < drawn_at_ + kDrawEveryS) return drawn_at_ + kDrawEveryS;
  const std::vector<std::string> rows = BarRows();
  if (!rows.empty()) {
    CutLine();
    if (std::exchange(status_drawn_, false)) pending_ += kEraseLine;
  }
  block_.Draw(rows, &pending_);
  bars_changed_ = block_changed_ = false;
  drawn_at_ = now;
  return kNever;
}

// As many as there is room for; the last row counts the others.
std::vector<std::string> OutputPrinter::BarRows() {
  std::vector<std::string> rows;
  for (const auto& [id, bar] : bars_) {
    if (bar.newest.empty()) continue;
    AppendPrefix(id, &rows.emplace_back());
    rows.back() += BarRow(bar.newest);
  }
  const size_t room = std::max(rows_ - 1, 1);
  if (rows.size() <= room) return rows;
  const size_t hidden = rows.size() - room + 1;
  rows.resize(room);
  rows.back() = absl::StrCat("… and ", hidden, " more progress bars");
  return rows;
}

void OutputPrinter::EndBars() {
  for (const auto& [id, bar] : bars_) Print(id.first, id.second, "", true);
}

void OutputPrinter::CursorMoved() {
  block_.Forget();
  block_changed_ = true;
}

void OutputPrinter::WaitAnew() {
  for (auto& [id, since] : unfinished_) since = kNotSeen;
}

void OutputPrinter::EnterPressed() {
  if (block_.drawn()) CursorMoved();
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

}  // namespace hvd::cli
