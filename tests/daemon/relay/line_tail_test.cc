// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/line_tail.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("lines come back whole however they were cut, the open one last") {
  LineTail tail;
  tail.Take("on");
  tail.Take("e\ntwo\nthr");
  tail.Take("ee");
  CHECK(tail.Lines() == Lines{"one", "two", "three"});
}

TEST_CASE("only the last lines are kept") {
  LineTail tail;
  for (int i = 0; i < 100; ++i) tail.Take(std::to_string(i) + "\n");
  CHECK(tail.Lines().size() == LineTail::kMostLines);
  CHECK(tail.Lines().front() == "80");
  tail.Take("open");
  CHECK(tail.Lines().size() == LineTail::kMostLines);
  CHECK(tail.Lines().back() == "open");
}

TEST_CASE("an endless line keeps its end and says that it was cut") {
  LineTail tail;
  for (int i = 0; i < 40; ++i) tail.Take(std::string(10000, 'a'));
  tail.Take("end");
  REQUIRE(tail.Lines().size() == 1);
  const std::string line = tail.Lines()[0];
  CHECK(line.size() <= LineTail::kMostBytes + 16);
  CHECK(line.substr(0, 3) == "…");
  CHECK(line.substr(line.size() - 3) == "end");
}

TEST_CASE("a long line is not cut inside a character") {
  for (int shift = 0; shift < 4; ++shift) {
    LineTail tail;
    tail.Take(std::string(shift, 'a'));
    for (int i = 0; i < 30000; ++i) tail.Take("€");
    REQUIRE(tail.Lines().size() == 1);
    const std::string line = tail.Lines()[0];
    CHECK(line.substr(0, 6) == "…€");
    CHECK(line.size() % 3 == 0);
  }
}

}  // namespace
}  // namespace hvd::daemon
