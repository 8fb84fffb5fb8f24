// SPDX-License-Identifier: Apache-2.0
#include "cli/console/shown_output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/console/outputs.h"
#include "cli/report/start_status.h"

namespace hvd::cli {
namespace {

// The most bytes that may wait for a slow reader of ours before the driver has to keep the rest.
constexpr size_t kMaxPending = size_t{256} * 1024;
constexpr size_t kMaxDrawn = 8192;  // bytes that may wait when bars are drawn anew
constexpr double kStatusEveryS = 0.1;
// A reader that has taken nothing for so long reads no more, or not for now. One that takes a byte
// is merely slow, and gets everything.
constexpr double kStalledS = 5;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kManyRanks = 10000;  // of a job that may grow without a bound

int MostRanks(const RunOptions& options) {
  if (!options.elastic) return options.topology.size();
  return options.elastic->max_np > 0 ? options.elastic->max_np : kManyRanks;
}

}  // namespace

ShownOutput::ShownOutput(const RunOptions& options, int bell)
    : out_(STDOUT_FILENO, "stdout",
           OutputPrinter(&options.topology, StyleOf(1, options.timestamps)), bell),
      own_err_(STDERR_FILENO, "stderr",
               OutputPrinter(&options.topology, StyleOf(2, options.timestamps)), bell),
      err_(OutputsAreOne() ? out_ : own_err_),
      hosts_keep_files_(!options.output_directory.empty() && !options.files_here) {
  if (options.files_here) files_.emplace(options.output_directory, MostRanks(options), bell);
}

void ShownOutput::Name(const Frame& rank) {
  const int number = static_cast<int>(rank.number);
  ranks_[static_cast<int>(rank.index)] = number;
  out_.printer().Name(rank.index, number, rank.text);
  own_err_.printer().Name(rank.index, number, rank.text);
}

void ShownOutput::Take(const Frame& output) {
  came_ += output.text.size();
  const auto named = ranks_.find(static_cast<int>(output.index));
  const int rank = named == ranks_.end() ? output.index : named->second;
  if (files_) files_->Put(rank, output.is_stderr, output.text, output.end);
  ConsoleSink& sink = output.is_stderr ? err_ : out_;
  if (!sink.open()) return sink.Lose(output.text.size());
  sink.printer().Print(output.index, output.is_stderr, output.text, output.end);
  if (output.number > 0) sink.printer().Skipped(output.index, output.is_stderr, output.number);
}

void ShownOutput::EnterPressed() {
  for (ConsoleSink* sink : {&out_, &own_err_}) sink->printer().EnterPressed();
}

void ShownOutput::CursorMoved() {
  for (ConsoleSink* sink : {&out_, &own_err_}) sink->printer().CursorMoved();
}

void ShownOutput::EndBars() {
  for (ConsoleSink* sink : {&out_, &own_err_}) sink->printer().EndBars();
}

int ShownOutput::Pump() {
  const int failed = out_.Pump();
  if (failed != 0 && failed != EPIPE) {
    own_err_.printer().Say(absl::StrCat("hvdrun: cannot write to stdout: ", strerror(failed),
                                        "; the job goes on, its output is lost (--output-filename "
                                        "DIR keeps it in files)\n"));
  }
  own_err_.Pump();
  TellOfFiles();
  return failed;
}

void ShownOutput::TellOfFiles() {
  if (!files_ || files_failed_ || files_->failure().empty()) return;
  files_failed_ = true;
  own_err_.printer().Say(absl::StrCat("hvdrun: ", files_->failure(),
                                      "; the job goes on, its output is shown here only\n"));
}

double ShownOutput::ShowUnfinished(bool held_up) {
  double next = kNever;
  for (ConsoleSink* sink : {&out_, &own_err_}) {
    if (held_up) sink->printer().WaitAnew();
    if (!sink->open() || held_up) continue;
    // A slow terminal gets fewer states of the bars, and no old ones.
    if (isatty(sink->fd()))
      sink->printer().SetRows(sink->backlog() < kMaxDrawn ? RowsOf(sink->fd()) : 0);
    next = std::min(next, sink->printer().ShowUnfinished(MonotonicSeconds()));
  }
  return next;
}

// Not from the background, and not before a slow terminal has the last one.
double ShownOutput::ShowStatus() {
  if (status_.empty()) {
    err_.printer().ShowStatus("");
    return kNever;
  }
  const double now = MonotonicSeconds();
  if (now < status_at_) return status_at_;
  status_at_ = now + kStatusEveryS;
  if (err_.backlog() == 0 && tcgetpgrp(err_.fd()) == getpgrp()) {
    err_.printer().ShowStatus(StatusLine(status_, now - began_, ColumnsOf(err_.fd())));
  }
  return status_at_;
}

void ShownOutput::Watch(double seconds) {
  for (ConsoleSink* sink : {&out_, &own_err_}) sink->Watch(seconds);
}

// A terminal is for the person who looks at it now, and a job shall not run at its pace.
bool ShownOutput::MaySkip(const ConsoleSink& sink) const {
  return isatty(sink.fd()) != 0 || sink.idle_s() >= kStalledS;
}

std::optional<uint64_t> ShownOutput::NewSkips() {
  if (!hosts_keep_files_) return std::nullopt;
  const uint64_t skips = (MaySkip(out_) ? kSkipOut : 0) | (MaySkip(err_) ? kSkipErr : 0);
  if (std::exchange(skips_, skips) == skips) return std::nullopt;
  return skips;
}

void ShownOutput::Age(double seconds, double patience) {
  for (ConsoleSink* sink : {&out_, &own_err_}) sink->Age(seconds, patience);
  if (files_) files_->Age(seconds, patience);
}

bool ShownOutput::full() const {
  return out_.backlog() > kMaxPending || own_err_.backlog() > kMaxPending ||
         (files_ && files_->waiting() > kMaxPending);
}

bool ShownOutput::done() const {
  return out_.done() && own_err_.done() && (!files_ || files_->waiting() == 0);
}

std::optional<uint64_t> ShownOutput::NewlyTaken() {
  if (told_ == came_ || full()) return std::nullopt;
  told_ = came_;
  return told_;
}

// Nobody is told that a pipe was closed: that is how `| head` ends.
std::vector<std::string> ShownOutput::Losses() const {
  std::vector<std::string> losses;
  for (const ConsoleSink* sink : {&out_, &own_err_}) {
    if (sink->lost() == 0 || sink->error() == EPIPE) continue;
    losses.push_back(
        sink->error() != 0
            ? absl::StrCat("cannot write to ", sink->name(), ": ", strerror(sink->error()), "; ",
                           sink->lost(), " bytes of output are lost")
            : absl::StrCat(sink->lost(), " bytes of output were not taken by the reader of ",
                           sink->name(), " and are lost"));
  }
  if (files_ && !files_->failure().empty()) losses.push_back(files_->failure());
  return losses;
}

}  // namespace hvd::cli
