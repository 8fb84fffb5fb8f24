// SPDX-License-Identifier: Apache-2.0
#include "base/source_error.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

std::string ErrorAt(const std::string& text, size_t offset) {
  const SourceLine line("f", 3, text, text);
  return std::string(line.ErrorAt(line.text().substr(offset), "wrong", "do right").message());
}

TEST_CASE("the caret stands under the byte") {
  CHECK(ErrorAt("abc", 1) == "f:3:2: wrong\n  abc\n   ^\n  do right");
  CHECK(ErrorAt("abc", 3) == "f:3:4: wrong\n  abc\n     ^\n  do right");
  CHECK(ErrorAt("", 0) == "f:3:1: wrong\n  \n  ^\n  do right");
}

TEST_CASE("columns count characters, tabs stay tabs, control bytes are not printed") {
  CHECK(ErrorAt("\xC3\xA9\tx", 3) == "f:3:3: wrong\n  \xC3\xA9\tx\n   \t^\n  do right");
  CHECK(ErrorAt("a\x1B[31mx", 6) == "f:3:7: wrong\n  a\\x1b[31mx\n           ^\n  do right");
}

TEST_CASE("a long line is shown around the caret") {
  const std::string message = ErrorAt(std::string(200, 'a') + "X" + std::string(200, 'b'), 200);
  CHECK(message == "f:3:201: wrong\n  ..." + std::string(60, 'a') + "X" + std::string(35, 'b') +
                       "...\n" + std::string(65, ' ') + "^\n  do right");
}

TEST_CASE("what is shown may differ from what is parsed") {
  const std::string shown = "a /*c*/ b", text = "a       b";
  const SourceLine line("f", 1, shown, text);
  CHECK(line.ErrorAt(line.text().substr(8), "m", "").message() ==
        "f:1:9: m\n  a /*c*/ b\n          ^");
  CHECK(line.Place() == "f:1");
}

TEST_CASE("quoted text is one printable line") {
  CHECK(Quoted("a b") == "\"a b\"");
  CHECK(Quoted("a\n\x1B\xC3") == "\"a\\n\\x1b\\xc3\"");
  CHECK(Quoted(std::string(100, 'a')) == "\"" + std::string(60, 'a') + "...\"");
}

}  // namespace
}  // namespace hvd
