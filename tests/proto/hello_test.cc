// SPDX-License-Identifier: Apache-2.0
#include "proto/hello.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

TEST_CASE("a hello survives the wire") {
  const std::string line = FormatHello("MARK", {7, "0.1.0"});
  REQUIRE(line == "MARK 7 0.1.0\n");
  Hello hello;
  REQUIRE(ParseHello(" 7 0.1.0", &hello));
  CHECK(hello.protocol == 7);
  CHECK(hello.version == "0.1.0");
  CHECK(hello.host.empty());
  CHECK(FormatHello("MARK", {7, "0.1.0", "c0ffee.box.1"}) == "MARK 7 0.1.0 c0ffee.box.1\n");
  REQUIRE(ParseHello(" 7 0.1.0 c0ffee.box.1", &hello));
  CHECK(hello.version == "0.1.0");
  CHECK(hello.host == "c0ffee.box.1");
}

TEST_CASE("what is no hello is refused") {
  Hello hello;
  for (const char* text :
       {"", " ", " x 0.1", " 7", " 7 ", "7 0.1", " -1 0.1", " 99999999999 0.1"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseHello(text, &hello));
  }
}

TEST_CASE("a link's name survives the environment") {
  const LinkName link{5, 123456789012, std::string(32, 'a'), "/proc/1/fd/9"};
  LinkName parsed;
  REQUIRE(ParseLinkName(FormatLinkName(link), &parsed));
  CHECK(parsed.fd == 5);
  CHECK(parsed.inode == 123456789012);
  CHECK(parsed.token == link.token);
  CHECK(parsed.path == link.path);
}

TEST_CASE("a broken link name is refused") {
  LinkName link;
  for (const char* text : {"", "5", "x:1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:p", "5:1:short:p"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseLinkName(text, &link));
  }
}

}  // namespace
}  // namespace hvd
