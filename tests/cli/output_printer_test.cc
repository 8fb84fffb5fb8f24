#include "cli/output_printer.h"

#include <catch2/catch.hpp>
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

TEST_CASE("on a terminal it is host and rank") {
  OutputPrinter plain(&kTopology, {.terminal = true});
  plain.Print(1, false, "a\n", false);
  CHECK(Pending(plain) == "alpha:1| a\n");
  OutputPrinter colored(&kTopology, {.terminal = true, .color = true});
  colored.Print(1, false, "a\n", false);
  CHECK(Pending(colored) == "\033[32malpha:1|\033[0m a\n");
}

TEST_CASE("another stream does not write over a progress bar") {
  OutputPrinter printer(&kTopology, {.terminal = true});
  printer.Print(0, false, "10%\r", false);
  printer.Print(0, false, "20%\r", false);
  printer.Print(1, false, "hi\n", false);
  CHECK(Pending(printer) == "alpha:0| 10%\ralpha:0| 20%\r\nalpha:1| hi\n");
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
