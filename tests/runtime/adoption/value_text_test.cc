// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/value_text.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

TEST_CASE("any bytes become digits, and come back") {
  std::string bytes;
  for (int each = 0; each < 256; ++each) bytes.push_back(static_cast<char>(each));
  const std::string text = ValueText(bytes);
  CHECK(text.size() == 512);
  CHECK(text.find_first_of(std::string(" =\n\0", 4)) == std::string::npos);
  CHECK(ParseValueText(text) == bytes);
  CHECK(ParseValueText("") == "");
}

TEST_CASE("what is no such text is not taken for bytes") {
  for (const char* text : {"a", "0g", "AB", "0 ", " 0", "unknown"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseValueText(text).has_value());
  }
}

}  // namespace
}  // namespace hvd::rt
