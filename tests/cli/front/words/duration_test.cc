// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/duration.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("times have units") {
  CHECK(*ParseDuration("30") == 30);
  CHECK(*ParseDuration("30s") == 30);
  CHECK(*ParseDuration("2m") == 120);
  CHECK(*ParseDuration("1.5h") == 5400);
  CHECK(*ParseDuration("500ms") == 0.5);
  CHECK(*ParseDuration("0") == 0);
  CHECK(*ParseDuration(".5") == 0.5);
  CHECK(*ParseDuration("1h30m") == 5400);
  CHECK(*ParseDuration("0.1") == 0.1);
}

TEST_CASE("what is no time is refused") {
  for (const char* text : {"", "s", "-1", "+1", "1d", "1 s", "1e9", "nan", "inf", "1.2.3", "0x10",
                           "99999999999h", "99999999999", "367h24m8784h", "inf", ".", "30S"}) {
    INFO(text);
    CHECK_FALSE(ParseDuration(text).ok());
  }
  CHECK(ParseDuration("soon").status().message() ==
        "\"soon\" is not a time; write 30, 30s, 2m, 1.5h or 500ms");
  for (const std::string text : {"99999999999", "99999999999h", "8785h"}) {
    CHECK(ParseDuration(text).status().message() ==
          "\"" + text + "\" is too long; at most a year (8784h) can be waited");
  }
}

}  // namespace
}  // namespace hvd::cli
