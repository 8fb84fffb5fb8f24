// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

TEST_CASE("strings of any bytes are valid JSON") {
  CHECK(JsonString("plain") == "\"plain\"");
  CHECK(JsonString("a\"b\\c\n\t\x01\x7f") == R"("a\"b\\c\n\t\u0001\u007f")");
  CHECK(JsonString("\xc2\x9b\u202e") == R"("\u009b\u202e")");
  CHECK(JsonString("grün €𝄞") == "\"grün €𝄞\"");
  CHECK(JsonString("\xff|\xc0\xaf|\xe2\x82|\xed\xa0\x80|") == "\"�|��|��|���|\"");
  CHECK(JsonString(std::string_view("\0", 1)) == R"("\u0000")");
}

TEST_CASE("members keep their order, and lists of objects have a line an element") {
  const Json json = {
      {"z", 1}, {"a", Json::array({{{"x", nullptr}}, {{"y", "\n"}}})}, {"m", {1, 2}}};
  CHECK(RenderJson(json) == R"({"z":1,"a":[{"x":null},{"y":"\n"}],"m":[1,2]})");
  CHECK(RenderJsonLines(json) ==
        "{\"z\":1,\n\"a\":[\n{\"x\":null},\n{\"y\":\"\\n\"}],\n\"m\":[1,2]}\n");
}

TEST_CASE("figures have a bounded number of decimals") {
  CHECK(RenderJson(Rounded(1.0 / 3)) == "0.333333");
  CHECK(RenderJson(Rounded(2.0 / 3, 2)) == "0.67");
  CHECK(RenderJson(Rounded(5)) == "5.0");
}

}  // namespace
}  // namespace hvd
