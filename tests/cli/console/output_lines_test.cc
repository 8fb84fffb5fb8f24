// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_lines.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

LineAssembler Assembler() {
  return LineAssembler([](std::string* out) { *out += "> "; });
}

TEST_CASE("each line gets the prefix, however its bytes come") {
  const std::string text = "one\ntwo\r\nthree\rfour\n\nlast";
  const std::string want = "> one\n> two\r\n> three\r> four\n> \n> last\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    LineAssembler lines = Assembler();
    std::string out;
    for (size_t at = 0; at < text.size(); at += piece) lines.Feed(text.substr(at, piece), &out);
    lines.Finish(&out);
    INFO(piece);
    CHECK(out == want);
  }
}

TEST_CASE("a progress bar is shown at once") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed("10%\r", &out);
  CHECK(out == "> 10%\r");
  lines.Feed("20%", &out);
  CHECK(out == "> 10%\r");
  lines.Finish(&out);
  CHECK(out == "> 10%\r> 20%\n");
}

TEST_CASE("a line over the limit is split and marked, and loses nothing") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed(std::string(kMaxLine + 10, 'x') + "\n", &out);
  const std::string mark = " [line goes on]\n";
  CHECK(out == "> " + std::string(kMaxLine, 'x') + mark + "> " + std::string(10, 'x') + "\n");
}

TEST_CASE("a line that was shown in part goes on there") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Show(&out);
  CHECK(out.empty());
  lines.Feed("one\nna", &out);
  CHECK(lines.has_unshown());
  lines.Show(&out);
  CHECK(!lines.has_unshown());
  lines.Feed("me? ", &out);
  CHECK(out == "> one\n> na");
  lines.Show(&out);
  lines.Feed("hello\nx", &out);
  CHECK(out == "> one\n> name? hello\n");
  lines.Show(&out);
  lines.Finish(&out);
  CHECK(out == "> one\n> name? hello\n> x\n");
}

TEST_CASE("what follows a line that was cut is another line, but for its newline") {
  const auto [rest, want] = GENERATE(table<std::string, std::string>(
      {{"\ntwo\n", "> two\n"}, {"\r\n", ""}, {"b\n\n", "> b\n> \n"}, {"", ""}}));
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed("a", &out);
  lines.Show(&out);
  lines.Cut();
  out.clear();
  lines.Feed(rest, &out);
  lines.Finish(&out);
  CHECK(out == want);
}

TEST_CASE("after Enter an empty line is one") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed("a", &out);
  lines.Show(&out);
  lines.EndedByOthers();
  lines.Feed("\n", &out);
  CHECK(out == "> a> \n");
}

TEST_CASE("what was shown of a line counts for its limit") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed(std::string(kMaxLine - 1, 'x'), &out);
  lines.Show(&out);
  lines.Feed("xy\n", &out);
  CHECK(out == "> " + std::string(kMaxLine, 'x') + " [line goes on]\n> y\n");
}

TEST_CASE("NUL and bad UTF-8 pass") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed(std::string("\0\xff\n", 3), &out);
  CHECK(out == std::string("> \0\xff\n", 5));
}

TEST_CASE("a finished stream without a rest adds nothing") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Finish(&out);
  CHECK(out.empty());
}

}  // namespace
}  // namespace hvd
