// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_printer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <regex>

namespace hvd {
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

TEST_CASE("another stream does not write over a progress bar") {
  OutputPrinter printer(&kTopology, {.terminal = true});
  printer.Print(0, false, "10%\r", false);
  printer.Print(0, false, "20%\r", false);
  printer.Print(1, false, "hi\n", false);
  CHECK(Pending(printer) == "alpha:0| 10%\ralpha:0| 20%\r\nalpha:1| hi\n");
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
  printer.ShowStatus("starting");
  CHECK(Pending(printer) == "alpha:0| 50%\r");
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

TEST_CASE("progress bars of several ranks keep their lines apart, whatever they are written to") {
  const bool terminal = GENERATE(false, true);
  OutputPrinter printer(&kTopology, {.terminal = terminal});
  const std::string zero = terminal ? "alpha:0| " : "[0]<stdout>:";
  const std::string one = terminal ? "alpha:1| " : "[1]<stdout>:";
  printer.Print(0, false, "\r10%\r20%", false);
  printer.Print(1, false, "\r50%\r", false);
  printer.Print(0, false, "\r30%\r", false);
  printer.Print(0, false, "40%\r", false);
  printer.Print(1, false, "\n", false);  // its bar's line has ended already
  printer.Say("hvdrun: a word\n");
  printer.Print(0, false, "100%\r", true);
  printer.Print(1, false, "done\n", true);
  CHECK(Pending(printer) == zero + "10%\r\n" + one + "50%\r\n" + zero + "20%\r" + zero + "30%\r" +
                                zero + "40%\r\nhvdrun: a word\n" + zero + "100%\r\n" + one +
                                "done\n");
}

TEST_CASE("timestamps stand in front") {
  OutputPrinter printer(&kTopology, {.timestamps = true});
  printer.Print(0, false, "x\n", false);
  const std::regex want(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[0\]<stdout>:x\n)");
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
}  // namespace hvd
