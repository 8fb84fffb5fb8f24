// SPDX-License-Identifier: Apache-2.0
// All that the console writes: stdout, stderr and, where it keeps them, the ranks' files. The job's
// output waits here for their readers; this knows how much does, and what was lost. Used by the
// console's one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/console/rank_files.h"
#include "cli/console/sink.h"
#include "cli/front/words/run_options.h"
#include "cli/link/frame.h"

namespace hvd::cli {

class ShownOutput {
 public:
  // `options` outlive this; `bell` is an event fd, rung when something is written. Throws
  // std::system_error where this machine gives no thread.
  ShownOutput(const RunOptions& options, int bell);

  // Which rank's the output of an index is from now on.
  void Name(const Frame& rank);
  // A piece of a rank's output.
  void Take(const Frame& output);
  // hvdrun's own words, on stderr.
  void Say(std::string_view lines, Tone tone = Tone::kNotice) { err_.printer().Say(lines, tone); }
  // The line that says what is being started; empty: none.
  void SetStatus(std::string text) { status_ = std::move(text); }
  void EnterPressed();
  // We were stopped, and a shell has written to the terminal.
  void CursorMoved();
  // No more output comes.
  void EndBars();

  // Hands on what may be written. Returns errno of stdout, once, when it cannot be written to.
  int Pump();
  // Lines without an end, prompts for one. `held_up`: we do not take what the driver has for us.
  // Returns when to look again; infinity: nothing waits.
  double ShowUnfinished(bool held_up);
  // Draws the status line anew for its seconds. Returns when to draw again; infinity: never.
  double ShowStatus();
  // `seconds` have gone by, in which our readers may have taken something.
  void Watch(double seconds);
  // Which outputs need not get what a rank's file has (kMaySkip), where that is news for the
  // driver.
  std::optional<uint64_t> NewSkips();
  // The job ends; see ConsoleSink::Age.
  void Age(double seconds, double patience);

  // Whether so much waits for a slow reader of ours that the driver has to keep the rest.
  bool full() const;
  bool done() const;  // all is written, or lost
  // Each rank's host keeps its output in files.
  bool hosts_keep_files() const { return hosts_keep_files_; }
  bool out_done() const { return out_.done(); }
  bool err_done() const { return err_.done(); }
  // Bytes of output that were taken in total, where that is news for the driver.
  std::optional<uint64_t> NewlyTaken();
  // Says what was lost and why, in words of the verdict.
  std::vector<std::string> Losses() const;

 private:
  void TellOfFiles();
  bool MaySkip(const ConsoleSink& sink) const;

  ConsoleSink out_;
  ConsoleSink own_err_;
  ConsoleSink&
      err_;  // out_ where stdout and stderr are one: two queues would cut each other's lines
  std::optional<RankFiles> files_;
  const bool hosts_keep_files_;
  uint64_t skips_ = 0;         // as told
  std::map<int, int> ranks_;   // by index, of those that were told
  bool files_failed_ = false;  // and told
  uint64_t came_ = 0;          // bytes
  uint64_t told_ = 0;          // … and as many as the driver knows to be taken
  const double began_ = MonotonicSeconds();
  std::string status_;    // of the start, as the driver tells it
  double status_at_ = 0;  // when it is drawn again
};

}  // namespace hvd::cli
