// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_printer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <regex>
#include <vector>

namespace hvd::cli {
namespace {

const Topology kTopology({{"alpha", 2}});

std::string Pending(const OutputPrinter& printer) { return std::string(printer.pending()); }

TEST_CASE("on a pipe the prefix is Horovod's") {
  OutputPrinter printer(&kTopology, {});
  printer.Print(1, false, "a\nb", false);
  printer.Print(0, true, "c\n", false);
  printer.Print(1, false, "", true);
  CHECK(Pending(printer) == "[1]<stdout>:a\n[0]<stderr>:c\n[1]<stdout>:b\n");
}

TEST_CASE("a member's output is that of the rank which it was told to be") {
  const Topology none;
  OutputPrinter printer(&none, {.terminal = true});
  printer.Print(7, false, "nobody knows\n", false);
  printer.Name(7, 3, "beta");
  printer.Print(7, false, "a\n", false);
  printer.Name(7, 2, "beta");
  printer.Print(7, false, "b\n", false);
  CHECK(Pending(printer) == "beta:3| a\nbeta:2| b\n");
}

TEST_CASE("on a terminal it is host and rank") {
  OutputPrinter plain(&kTopology, {.terminal = true});
  plain.Print(1, false, "a\n", false);
  CHECK(Pending(plain) == "alpha:1| a\n");
  OutputPrinter colored(&kTopology, {.terminal = true, .color = true});
  colored.Print(1, false, "a\n", false);
  CHECK(Pending(colored) == "\033[32malpha:1|\033[0m a\n");
}

TEST_CASE("hvdrun's own words never steer the terminal; the ranks' are theirs") {
  OutputPrinter printer(&kTopology, {});
  printer.Say("hvdrun: \x1b[2J\r\xc2\x9b\n\tnext\n");
  printer.Print(0, false, "\x1b[2J\n", false);
  CHECK(Pending(printer) == "hvdrun: \\x1b[2J\\r\\u009b\n\tnext\n[0]<stdout>:\x1b[2J\n");
}

// A terminal of that many columns, as it looks in the end: it knows what the printer uses.
class Screen {
 public:
  explicit Screen(size_t columns) : columns_(columns) {}

  void Take(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) at += TakeOne(bytes.substr(at));
  }
  // Rows without blanks at their end, each with a newline.
  std::string Text() const {
    std::string text;
    for (const std::string& row : rows_) {
      text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
    }
    return text.substr(0, text.find_last_not_of('\n') + 2);
  }

 private:
  size_t TakeOne(const std::string& rest) {
    static const std::map<std::string, int> kSequences = {
        {"\033[A", 0}, {"\033[J", 1}, {"\033[K", 2}, {"\033[?7l", 3}, {"\033[?7h", 4}};
    for (const auto& [sequence, which] : kSequences) {
      if (rest.rfind(sequence, 0) != 0) continue;
      if (which == 0) --row_;
      if (which == 1) rows_.resize(row_ + 1);
      if (which == 1 || which == 2) rows_[row_].resize(std::min(column_, rows_[row_].size()));
      if (which == 3 || which == 4) wraps_ = which == 4;
      return sequence.size();
    }
    REQUIRE(rest[0] != '\033');
    Put(rest[0]);
    return 1;
  }
  void Put(char c) {
    if (c == '\r') column_ = 0;
    if (c == '\n') Feed();
    if (c == '\r' || c == '\n') return;
    if (column_ == columns_ && wraps_) Feed();
    if (column_ == columns_) --column_;
    rows_[row_].resize(std::max(rows_[row_].size(), column_ + 1), ' ');
    rows_[row_][column_++] = c;
  }
  void Feed() {  // as with a tty's ONLCR
    column_ = 0;
    if (++row_ == rows_.size()) rows_.emplace_back();
  }

  const size_t columns_;
  std::vector<std::string> rows_{""};
  size_t row_ = 0, column_ = 0;
  bool wraps_ = true;
};

constexpr OutputStyle kDraws{.terminal = true, .redraws = true};

void Show(OutputPrinter* printer, Screen* screen) {
  screen->Take(Pending(*printer));
  printer->Written(Pending(*printer).size());
}

TEST_CASE("each rank's progress bar has a row at the bottom, whole lines go above them") {
  OutputPrinter printer(&kTopology, kDraws);
  Screen screen(40);
  double now = 10;
  for (int step = 0; step <= 40; ++step) {
    for (const int rank : {0, 1}) {
      printer.Print(rank, true, "\rstep " + std::to_string(step + rank), false);
    }
    if (step == 20) printer.Print(1, false, "a line\n", false);
    if (step == 30) printer.Say("hvdrun: a word\n");
    now += 0.1;
    printer.ShowUnfinished(now);
    Show(&printer, &screen);
    const std::string bars = "alpha:0| step " + std::to_string(step) + "\nalpha:1| step " +
                             std::to_string(step + 1) + "\n";
    std::string above = step < 20 ? "" : "alpha:1| a line\n";
    if (step >= 30) above += "hvdrun: a word\n";
    CHECK(screen.Text() == above.append(bars));
  }
  printer.Print(0, true, "\n", true);
  printer.EndBars();
  Show(&printer, &screen);
  CHECK(screen.Text() == "alpha:1| a line\nhvdrun: a word\nalpha:0| step 40\nalpha:1| step 41\n");
  CHECK(std::isinf(printer.ShowUnfinished(now + 9)));
}

TEST_CASE("a bar that is wider than the terminal, or steers it, takes one row") {
  OutputPrinter printer(&kTopology, kDraws);
  Screen screen(20);
  printer.Print(0, false, "\r50% \033[2K\033[A\033]0;title\a\b" + std::string(50, '#'), false);
  printer.Print(1, false, "60%\r", false);
  printer.ShowUnfinished(1);
  Show(&printer, &screen);
  CHECK(screen.Text() == "alpha:0| 50% #######\nalpha:1| 60%\n");
}

TEST_CASE("bars that find no row are counted, and a prompt is not written over") {
  const Topology four({{"alpha", 4}});
  OutputPrinter printer(&four, kDraws);
  Screen screen(40);
  printer.SetRows(3);
  for (const int rank : {0, 1, 2, 3}) printer.Print(rank, false, "1%\r", false);
  printer.ShowUnfinished(1);
  Show(&printer, &screen);
  CHECK(screen.Text() == "alpha:0| 1%\n\xe2\x80\xa6 and 3 more progress bars\n");
  printer.Print(0, true, "(Pdb) ", false);
  printer.ShowUnfinished(2);
  printer.ShowUnfinished(3);
  printer.ShowUnfinished(4);
  Show(&printer, &screen);
  CHECK(screen.Text() == "alpha:0| (Pdb)\n");
  printer.Print(0, true, "c\n", false);
  printer.SetRows(0);  // in the background
  CHECK(printer.ShowUnfinished(5) > 5);
  Show(&printer, &screen);
  CHECK(screen.Text() == "alpha:0| (Pdb) c\n");
  printer.EndBars();
  Show(&printer, &screen);
  CHECK(screen.Text() == "alpha:0| (Pdb) c\nalpha:0| 1%\nalpha:1| 1%\nalpha:2| 1%\nalpha:3| 1%\n");
}

TEST_CASE("where nothing can be drawn anew a bar is a line a second, and its last state is one") {
  const bool terminal = GENERATE(false, true);
  OutputPrinter printer(&kTopology, {.terminal = terminal});
  const std::string zero = terminal ? "alpha:0| " : "[0]<stdout>:";
  double now = 10;
  for (int step = 0; step < 40; ++step, now += 0.05) {
    printer.Print(0, false, "\r" + std::to_string(step) + "/40", false);
    CHECK(printer.ShowUnfinished(now) > now);
  }
  const std::string first = zero + "0/40\n" + zero + "20/40\n";
  CHECK(Pending(printer) == first);
  SECTION("it rests") {
    const double next = printer.ShowUnfinished(now);
    CHECK(next < now + 1);
    CHECK(std::isinf(printer.ShowUnfinished(next + 0.01)));
    CHECK(Pending(printer) == first + zero + "39/40\n");
    printer.Print(0, false, "\n", true);
    CHECK(Pending(printer) == first + zero + "39/40\n");
  }
  SECTION("it ends with a newline") { printer.Print(0, false, "\r40/40\n", true); }
  SECTION("it ends with the stream") { printer.Print(0, false, "\r40/40\r", true); }
  SECTION("all output ends") {
    printer.Print(0, false, "\r40/40", false);
    printer.EndBars();
  }
  const bool rested = Pending(printer) == first + zero + "39/40\n";
  if (!rested) CHECK(Pending(printer) == first + zero + "40/40\n");
}

TEST_CASE("a bar's state does not hold back lines, and another rank's line is not in it") {
  OutputPrinter printer(&kTopology, {});
  printer.Print(0, false, "10%\r20", false);
  printer.ShowUnfinished(1);
  printer.Print(1, false, "hi\n", false);
  printer.Print(0, false, "%\r", false);
  printer.ShowUnfinished(1.1);
  printer.Print(0, true, "a word\n", false);
  printer.ShowUnfinished(2.5);
  CHECK(Pending(printer) ==
        "[0]<stdout>:10%\n[1]<stdout>:hi\n[0]<stderr>:a word\n[0]<stdout>:20%\n");
}

TEST_CASE("the status line is drawn anew in place and erased before anybody else's words") {
  OutputPrinter printer(&kTopology, {.terminal = true, .redraws = true});
  printer.ShowStatus("starting 1/2");
  printer.ShowStatus("starting 2/2");
  CHECK(Pending(printer) == "\rstarting 1/2\033[K\rstarting 2/2\033[K");
  printer.Say("hvdrun: noted\n");
  CHECK(Pending(printer) == "\rstarting 1/2\033[K\rstarting 2/2\033[K\r\033[Khvdrun: noted\n");
  printer.Written(Pending(printer).size());
  printer.ShowStatus("again");
  printer.Print(0, false, "out\n", false);
  printer.ShowStatus("");
  CHECK(Pending(printer) == "\ragain\033[K\r\033[Kalpha:0| out\n");
  printer.Written(Pending(printer).size());
  printer.ShowStatus("last");
  printer.ShowStatus("");
  printer.ShowStatus("");
  CHECK(Pending(printer) == "\rlast\033[K\r\033[K");
}

TEST_CASE("the status line writes over nobody's line, and is not for what cannot draw anew") {
  OutputPrinter printer(&kTopology, {.terminal = true, .redraws = true});
  printer.Print(0, false, "50%\r", false);
  printer.ShowUnfinished(1);
  const std::string before = Pending(printer);
  printer.ShowStatus("starting");
  CHECK(Pending(printer) == before);
  for (const OutputStyle style : {OutputStyle{}, OutputStyle{.terminal = true}}) {
    OutputPrinter plain(&kTopology, style);
    plain.ShowStatus("starting");
    plain.Say("hvdrun: noted\n");
    CHECK(Pending(plain) == "hvdrun: noted\n");
  }
}

TEST_CASE("hvdrun's words are coloured where the terminal can, after they are made printable") {
  OutputPrinter printer(&kTopology, {.terminal = true, .color = true});
  printer.Say("hvdrun: a\033[2J\n", Tone::kError);
  CHECK(Pending(printer) == "\033[1;31mhvdrun:\033[0m\033[1m a\\x1b[2J\033[0m\n");
}

TEST_CASE("a line without its end is shown after a while, and goes on there") {
  OutputPrinter printer(&kTopology, {});
  CHECK(std::isinf(printer.ShowUnfinished(9)));
  printer.Print(0, false, "na", false);
  CHECK(printer.ShowUnfinished(10) == 10 + kShowAfterS);
  printer.Print(0, false, "me? ", false);  // counts from the first byte
  CHECK(printer.ShowUnfinished(10.1) == 10 + kShowAfterS);
  CHECK(Pending(printer).empty());
  CHECK(std::isinf(printer.ShowUnfinished(10.3)));
  CHECK(Pending(printer) == "[0]<stdout>:name? ");
  printer.Print(0, false, "hi\n", false);
  CHECK(Pending(printer) == "[0]<stdout>:name? hi\n");
}

TEST_CASE("whoever writes after an unfinished line ends it") {
  OutputPrinter printer(&kTopology, {});
  printer.Print(0, false, "a", false);
  printer.ShowUnfinished(10);
  printer.ShowUnfinished(11);
  const std::string a = "[0]<stdout>:a";
  SECTION("another stream") {
    printer.Print(0, true, "x\n", false);
    printer.Print(0, false, "b\n", false);
    CHECK(Pending(printer) == a + "\n[0]<stderr>:x\n[0]<stdout>:b\n");
  }
  SECTION("another's unfinished line") {
    printer.Print(1, false, "x", false);
    printer.ShowUnfinished(12);
    printer.ShowUnfinished(13);
    printer.Print(0, false, "\n", false);
    printer.Print(1, false, "y\n", false);
    CHECK(Pending(printer) == a + "\n[1]<stdout>:xy\n");
  }
  SECTION("hvdrun") {
    printer.Say("hvdrun: x\n");
    printer.Print(0, false, "", true);
    CHECK(Pending(printer) == a + "\nhvdrun: x\n");
  }
  SECTION("the count of its own lines that were left out") {
    printer.Skipped(0, false, 3);
    CHECK(Pending(printer) == a + "\n[0]<stdout>:[3 lines are only in this rank's file]\n");
  }
  SECTION("nobody: the stream ends") {
    printer.Print(0, false, "", true);
    CHECK(Pending(printer) == a + "\n");
  }
}

TEST_CASE("a line of two quick pieces is not cut, also when something held its end up") {
  OutputPrinter printer(&kTopology, {});
  printer.Print(0, false, "one\ntw", false);
  printer.ShowUnfinished(10);
  printer.Print(1, false, "x\n", false);
  printer.Print(0, false, "o\nthr", false);
  printer.ShowUnfinished(10.3);  // since now, not since "tw"
  printer.WaitAnew();
  printer.ShowUnfinished(99);
  printer.Print(1, false, "y\n", false);
  printer.Print(0, false, "ee\n", false);
  CHECK(Pending(printer) ==
        "[0]<stdout>:one\n[1]<stdout>:x\n[0]<stdout>:two\n[1]<stdout>:y\n[0]<stdout>:three\n");
}

TEST_CASE("Enter ends the line where a terminal's cursor stands") {
  OutputPrinter printer(&kTopology, {.terminal = true});
  printer.Print(0, false, "name? ", false);
  printer.ShowUnfinished(10);
  printer.ShowUnfinished(11);
  printer.EnterPressed();
  printer.Print(1, false, "x\n", false);
  printer.Print(0, false, "hi\n", false);
  CHECK(Pending(printer) == "alpha:0| name? alpha:1| x\nalpha:0| hi\n");
}

TEST_CASE("timestamps stand in front") {
  OutputPrinter printer(&kTopology, {.timestamps = true});
  printer.Print(0, false, "x\n", false);
  printer.Say("hvdrun: epoch 2: 1 rank on 1 host\n");
  const std::string time = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )";
  const std::regex want(time + R"(\[0\]<stdout>:x\n)" + time + R"(hvdrun: epoch 2: [^\n]*\n)");
  CHECK(std::regex_match(Pending(printer), want));
}

TEST_CASE("what is written leaves the rest in order") {
  OutputPrinter printer(&kTopology, {});
  printer.Say("hvdrun: one\n");
  printer.Written(8);
  CHECK(Pending(printer) == "one\n");
  printer.Say("two\n");
  CHECK(Pending(printer) == "one\ntwo\n");
  printer.Written(8);
  CHECK(printer.pending().empty());
}

TEST_CASE("skipped lines and ranks that do not exist") {
  OutputPrinter printer(&kTopology, {});
  printer.Skipped(1, false, 12);
  printer.Print(7, false, "x\n", false);
  printer.Print(-1, false, "x\n", false);
  OutputPrinter terminal(&kTopology, {.terminal = true});
  terminal.Skipped(7, false, 12);
  terminal.Skipped(-1, false, 12);
  CHECK(terminal.pending().empty());
  CHECK(Pending(printer) == "[1]<stdout>:[12 lines are only in this rank's file]\n");
}

}  // namespace
}  // namespace hvd::cli
