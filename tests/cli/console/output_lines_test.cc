// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_lines.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

LineAssembler Assembler() {
  return LineAssembler([](std::string* out) { *out += "> "; });
}

TEST_CASE("each line gets the prefix, however its bytes come") {
  const std::string text = "one\ntwo\r\nthree\rfour\n\nlast";
  const std::string want = "> one\n> two\r\n> four\n> \n> last\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    LineAssembler lines = Assembler();
    std::string out;
    for (size_t at = 0; at < text.size(); at += piece) lines.Feed(text.substr(at, piece), &out);
    lines.Finish(&out);
    INFO(piece);
    CHECK(out == want);
  }
}

TEST_CASE("of a progress bar there is the newest state, and the newest that is whole") {
  LineAssembler lines = Assembler();
  std::string out;
  CHECK(lines.bar().empty());
  lines.Feed("10%\r", &out);
  CHECK(lines.bar() == "10%");
  lines.Feed("20", &out);
  CHECK(lines.bar() == "20");
  CHECK(lines.ended_bar() == "10%");
  CHECK_FALSE(lines.has_unshown());  // it is no prompt
  lines.Feed("%", &out);
  CHECK(lines.bar() == "20%");
  CHECK(out.empty());
  lines.Finish(&out);
  CHECK(out == "> 20%\n");
  CHECK(lines.bar().empty());
}

TEST_CASE("what ends a progress bar, and what of it stays") {
  const auto [bytes, want, left] = GENERATE(table<std::string, std::string, std::string>({
      {"\r 99%\r100%\n", "> 100%\n", ""},                  // tqdm
      {"\r 99%\r    \r", "", ""},                          // … that leaves nothing
      {"\r 99%\r\033[K", "", ""},                          // another way to do so
      {"\r 99%\r    \rnote\n\r 99%", "> note\n", " 99%"},  // a line written above it
      {"50%\r51%\r", "", "51%"},
      {"50%\r\r\r", "", "50%"},
      {"50%\r\n", "> 50%\r\n", ""},
      {"a\n\r50%", "> a\n", "50%"},
      {"\r\n", "> \r\n", ""},
  }));
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    LineAssembler lines = Assembler();
    std::string out;
    for (size_t at = 0; at < bytes.size(); at += piece) lines.Feed(bytes.substr(at, piece), &out);
    CAPTURE(bytes, piece);
    CHECK(out == want);
    CHECK(lines.bar() == left);
  }
}

TEST_CASE("a state that was given out as a line is not one again") {
  const std::string end = GENERATE("\n", "\r\n", "\r", "");
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed("\r100%", &out);
  lines.GiveOut(lines.bar(), &out);
  CHECK(lines.is_given_out(lines.bar()));
  lines.Feed(end, &out);
  lines.Finish(&out);
  CHECK(out == "> 100%\n");
  lines.Feed("100%\n", &out);
  CHECK(out == "> 100%\n> 100%\n");
}

TEST_CASE("a prompt that turns out to be a bar stays a line, and the bar goes on") {
  LineAssembler lines = Assembler();
  std::string out;
  lines.Feed("0%", &out);
  lines.Show(&out);
  lines.Feed("\r1%", &out);
  CHECK(out == "> 0%\n");
  CHECK(lines.bar() == "1%");
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
}  // namespace hvd::cli
