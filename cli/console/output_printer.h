// SPDX-License-Identifier: Apache-2.0
// Worker output for the person: prefixes, colours, and which of our two streams it goes to. Used by
// the console's one thread; writes nothing itself.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console/bar_block.h"
#include "cli/console/output_lines.h"
#include "cli/console/word_colors.h"
#include "hostfile/topology.h"

namespace hvd::cli {

struct OutputStyle {
  bool terminal = false;  // "host:rank|" instead of "[rank]<stdout>:"
  bool color = false;
  bool redraws = false;  // a line can be drawn anew
  bool timestamps = false;
};

// A line is shown after this long without its end: programs write most in two quick pieces.
inline constexpr double kShowAfterS = 0.2;
// Where no line can be drawn anew, a bar's state is a line of its own at most this often.
inline constexpr double kBarEveryS = 1;

// The output that waits to be written to one of our streams, in order.
class OutputPrinter {
 public:
  OutputPrinter(const Topology* topology, OutputStyle style) : topology_(topology), style_(style) {}

  // Jobs whose members come and go: the streams of this index are from now on those of a rank on
  // a host. Where members stay, indices are ranks.
  void Name(int index, int rank, std::string host);
  // A piece of worker output. `end`: the stream is complete.
  void Print(int index, bool is_stderr, std::string_view data, bool end);
  // Lines that only the rank's file has.
  void Skipped(int index, bool is_stderr, uint64_t lines);
  // hvdrun's own words, whole lines.
  void Say(std::string_view lines, Tone tone = Tone::kNotice);
  // A line that stays below all else until it is another or, empty, none. Where it cannot be drawn
  // anew, or another's line is not complete, it is not drawn.
  void ShowStatus(std::string_view line);

  // Gives out the lines that have waited kShowAfterS for their end (a prompt has none), and what is
  // due of progress bars. `now` is seconds of any monotonic clock. Returns when to ask again;
  // infinity: nothing waits.
  double ShowUnfinished(double now);
  // How many rows the terminal has; 0: nothing is to be drawn now.
  void SetRows(int rows) { rows_ = rows; }
  // No more output comes: the bars' last states are lines from now on.
  void EndBars();
  // The cursor is somewhere else: a shell has written meanwhile.
  void CursorMoved();
  // Their ends may be held up behind what we do not take: they wait anew.
  void WaitAnew();
  // The person's Enter has ended the line where the cursor stands.
  void EnterPressed();

  std::string_view pending() const { return std::string_view(pending_).substr(written_); }
  void Written(size_t bytes);

 private:
  using StreamId = std::pair<int, bool>;  // index, is_stderr
  struct RankName {
    int rank = 0;
    std::string host;
  };
  bool Knows(int index) const;

  // The progress bar that a stream may have. Times as of ShowUnfinished.
  struct Bar {
    std::string newest;
    double changed_at = 0;  // kNotSeen: since the last look
    double given_out_at = -std::numeric_limits<double>::infinity();  // as a line
  };

  LineAssembler& Stream(StreamId id);
  void AppendPrefix(StreamId id, std::string* out) const;
  void NoteBar(StreamId id);
  double ShowPrompts(double now);
  double GiveOutBars(double now);
  double DrawBars(double now);
  std::vector<std::string> BarRows();
  // Erases what stands below all else, so that lines can come there.
  void ClearBelow();
  // Before anybody else's bytes: ends the unfinished line that was shown.
  void CutLine();

  const Topology* topology_;
  const OutputStyle style_;
  std::map<int, RankName> names_;  // by index, of those that were told
  std::map<StreamId, LineAssembler> streams_;
  std::string pending_;
  size_t written_ = 0;  // bytes of pending_ that are out
  bool status_drawn_ = false;
  std::map<StreamId, Bar> bars_;
  BarBlock block_;              // of style_.redraws
  bool bars_changed_ = false;   // since block_ was drawn: some bar, …
  bool block_changed_ = false;  // … or it was erased
  double drawn_at_ = 0;
  int rows_ = 24;
  std::map<StreamId, double>
      unfinished_;                 // not shown, and since when; kNotSeen: since the last look
  std::optional<StreamId> shown_;  // whose unfinished line stands last
};

}  // namespace hvd::cli
