// SPDX-License-Identifier: Apache-2.0
#include "base/names_apart.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

TEST_CASE("names that can be told apart are shown as ever") {
  CHECK(ShownApart({}).empty());
  CHECK(ShownApart({"b", "a", "b"}) == std::vector<std::string>{"'b'", "'a'", "'b'"});
  const std::string tail(200, 'x');
  const std::vector<std::string> shown = ShownApart({"one" + tail, "two" + tail});
  CHECK(shown[0] == "'one" + std::string(117, 'x') + "...'");
}

TEST_CASE("of long names that begin alike the part that differs is shown") {
  const std::string head(200, 'h');
  const std::vector<std::string> shown = ShownApart({head + ".1.weight", head + ".2.weight", head});
  CHECK(shown[0] == "'" + std::string(40, 'h') + "..." + std::string(19, 'h') + ".1.weight'");
  CHECK(shown[1] == "'" + std::string(40, 'h') + "..." + std::string(19, 'h') + ".2.weight'");
  CHECK(shown[2] == "'" + std::string(40, 'h') + "..." + std::string(20, 'h') + "'");
}

TEST_CASE("a cut falls between characters, and what steers a terminal is escaped") {
  std::string head;
  while (head.size() < 200) head += "\u00e9";
  for (const std::string& shown : ShownApart({head + "a\x1b[2J", head + "b"})) {
    CHECK(shown.find('\x1b') == std::string::npos);
    CHECK(shown.find("\\xc3") == std::string::npos);
    CHECK(shown.find("\\xa9") == std::string::npos);
  }
}

}  // namespace
}  // namespace hvd
