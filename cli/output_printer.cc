#include "cli/output_printer.h"

#include <time.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd {
namespace {

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

void OutputPrinter::AppendPrefix(StreamId id, std::string* out) const {
  const auto [rank, is_stderr] = id;
  if (style_.timestamps) *out += TimeWords();
  if (!style_.terminal) {
    absl::StrAppend(out, "[", rank, is_stderr ? "]<stderr>:" : "]<stdout>:");
    return;
  }
  // Neighbouring ranks differ in colour; 31 (red) is left for errors.
  static constexpr int kColors[] = {36, 32, 33, 35, 34, 96, 92, 93, 95, 94};
  const std::string& host = topology_->hosts()[topology_->place(rank).host].name;
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
  if (style_.terminal && open_line_ && last_ != next) pending_ += '\n';
  open_line_ = false;
  last_ = next;
}

void OutputPrinter::Print(int rank, bool is_stderr, std::string_view data, bool end) {
  if (rank < 0 || rank >= topology_->size()) return;
  const StreamId id(rank, is_stderr);
  std::string lines;
  LineAssembler& stream = Stream(id);
  stream.Feed(data, &lines);
  if (end) stream.Finish(&lines);
  if (lines.empty()) return;
  LeaveLine(id);
  pending_ += lines;
  open_line_ = lines.back() == '\r';
}

void OutputPrinter::Skipped(int rank, bool is_stderr, uint64_t lines) {
  if (rank < 0 || rank >= topology_->size()) return;
  const StreamId id(rank, is_stderr);
  LeaveLine(id);
  AppendPrefix(id, &pending_);
  absl::StrAppend(&pending_, "[", lines, " lines are only in this rank's file]\n");
}

void OutputPrinter::Say(std::string_view lines) {
  if (lines.empty()) return;
  LeaveLine({-1, true});
  pending_ += lines;
}

void OutputPrinter::Written(size_t bytes) {
  written_ += bytes;
  if (written_ < pending_.size() && written_ < (1 << 20)) return;
  pending_.erase(0, written_);
  written_ = 0;
}

}  // namespace hvd
