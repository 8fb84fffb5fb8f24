// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using namespace std::string_literals;

TEST_CASE("what is printable stays as it is") {
  for (const std::string text :
       {"", "a b", "grün €𝄞 日本", "a\\x1b'\"`$", "\U0001F468\u200D\U0001F469"}) {
    CHECK(Printable(text) == text);
    CHECK(PrintableLines(text) == text);
  }
}

TEST_CASE("every control character is escaped") {
  for (int byte = 0; byte < 0x20; ++byte) {
    const std::string shown = Printable(std::string(1, static_cast<char>(byte)));
    INFO(byte);
    CHECK(shown.size() >= 2);
    CHECK(shown[0] == '\\');
  }
  CHECK(Printable("a\nb\rc\td") == "a\\nb\\rc\\td");
  CHECK(Printable("\x1b]0;title\x07\x7f\0"s) == "\\x1b]0;title\\x07\\x7f\\x00");
}

TEST_CASE("C1 controls are escaped, in UTF-8 and as bytes") {
  for (int byte = 0x80; byte < 0xa0; ++byte) {
    const char raw = static_cast<char>(byte);
    INFO(byte);
    CHECK(Printable("a"s + raw + "b").substr(0, 3) == "a\\x");
    CHECK(Printable("a\xc2"s + raw + "b").substr(0, 5) == "a\\u00");
  }
  CHECK(Printable("\x9b"
                  "31m\xc2\x9b"
                  "31m") == "\\x9b31m\\u009b31m");
  CHECK(Printable("\xc2\xa0") == "\xc2\xa0");
}

TEST_CASE("what turns the direction of text or breaks lines elsewhere is escaped") {
  CHECK(Printable("\u061c|\u200e|\u200f|\u2028|\u2029") ==
        "\\u061c|\\u200e|\\u200f|\\u2028|\\u2029");
  CHECK(Printable("\u202a\u202b\u202c\u202d\u202e") == "\\u202a\\u202b\\u202c\\u202d\\u202e");
  CHECK(Printable("\u2066\u2067\u2068\u2069") == "\\u2066\\u2067\\u2068\\u2069");
  CHECK(Printable("\u2027\u202f\u2065\u206a") == "\u2027\u202f\u2065\u206a");
}

TEST_CASE("bytes that are no UTF-8 are escaped one by one") {
  CHECK(Printable("\xff|\xc0\xaf|\xe2\x82|\xed\xa0\x80|\xf4\x90\x80\x80|\xc3") ==
        "\\xff|\\xc0\\xaf|\\xe2\\x82|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xc3");
}

TEST_CASE("making printable twice changes nothing") {
  const std::string once = Printable("\x1b[31m\n\xff\u202e");
  CHECK(Printable(once) == once);
}

TEST_CASE("long text is cut between characters") {
  CHECK(Printable("abcdef", 6) == "abcdef");
  CHECK(Printable("abcdefg", 6) == "abcdef...");
  CHECK(Printable("€€€", 7) == "€€...");
  CHECK(Printable("𝄞𝄞", 7) == "𝄞...");
  CHECK(Printable(std::string(100, '\x80'), 6).size() <= 6 * 4 + 3);
  CHECK(Printable(std::string(1 << 20, 'x'), 10) == std::string(10, 'x') + "...");
  CHECK(ShownName(std::string(500, 'n')) == "'" + std::string(120, 'n') + "...'");
  CHECK(ShownName("a\n") == "'a\\n'");
  CHECK(ShownName("\x01join") == "'join'");
  CHECK(ShownName("\x02\x01unnamed call 1 (bool)") == "'unnamed call 1 (bool)'");
  CHECK(ShownName("a\x01") == "'a\\x01'");
}

TEST_CASE("lines and tabs may be kept, and nothing else") {
  CHECK(PrintableLines("a\tb\n\x1b[2Jc\r\n\u0085\u2028") == "a\tb\n\\x1b[2Jc\\r\n\\u0085\\u2028");
}

}  // namespace
}  // namespace hvd
