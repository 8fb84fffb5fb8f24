// SPDX-License-Identifier: Apache-2.0
#include "cli/front/local_host.h"

#include <catch2/catch.hpp>

#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

bool IsLocal(const std::string& item, const FrontWorld& world = BoxWorld()) {
  return IsLocalHost(ParseHostList(item, "-H")->front(), world);
}

TEST_CASE("names and addresses of this machine are local") {
  for (const char* item : {"localhost", "LOCALHOST", "localhost.localdomain", "127.0.0.1",
                           "127.3.2.1", "[::1]", "[0:0:0:0:0:0:0:1]", "box", "Box",
                           "box.example.org", "10.0.0.5", "[fe80::1:2%eth0]", "[FE80:0::1:2]"}) {
    INFO(item);
    CHECK(IsLocal(item));
  }
}

TEST_CASE("others are not") {
  for (const char* item : {"box2", "b", "box.other.org", "10.0.0.6", "[fe80::1:3]", "128.0.0.1",
                           "localhost2", "example.org", "127.evil.org"}) {
    INFO(item);
    CHECK_FALSE(IsLocal(item));
  }
}

TEST_CASE("the short name is this machine's when the machine calls itself by the long one") {
  FrontWorld world = BoxWorld();
  world.host_name = "box.example.org";
  world.full_host_name = nullptr;
  CHECK(IsLocal("box", world));
  CHECK(IsLocal("box.example.org", world));
  CHECK_FALSE(IsLocal("box.example.com", world));
}

TEST_CASE("the resolver is asked only about names like the own one") {
  FrontWorld world = BoxWorld();
  int asked = 0;
  world.full_host_name = [&asked] {
    ++asked;
    return std::string("box.example.org");
  };
  IsLocal("other.example.org", world);
  IsLocal("box", world);
  IsLocal("localhost", world);
  CHECK(asked == 0);
  IsLocal("box.example.org", world);
  CHECK(asked == 1);
}

TEST_CASE("a port or another user asks for the remote shell") {
  CHECK(IsLocal("me@localhost"));
  CHECK_FALSE(IsLocal("you@localhost"));
  HostSlots host;
  host.name = "localhost";
  host.port = 2222;
  CHECK_FALSE(IsLocalHost(host, BoxWorld()));
}

}  // namespace
}  // namespace hvd::cli
