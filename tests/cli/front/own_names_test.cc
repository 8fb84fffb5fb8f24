// SPDX-License-Identifier: Apache-2.0
#include "cli/front/own_names.h"

#include <catch2/catch.hpp>

#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

FrontOutcome DryRun(const std::string& hosts) {
  return Decide({"-H", hosts, "--dry-run", "--gpus-per-rank", "0"});
}

TEST_CASE("this machine by several names is one host, whose local ranks go on counting") {
  CHECK(DryRun("localhost:1,127.0.0.1:1,other:1,box:2").out ==
        "5 ranks on 2 hosts (-H: 2 hosts, 5 slots)\n"
        "127.0.0.1 (-H:1:13) is this machine, as localhost (-H:1:1) is: one host with 2 slots\n"
        "box (-H:1:33) is this machine, as localhost (-H:1:1) is: one host with 4 slots\n"
        "rank  host       slot  local_rank  cores  GPU\n"
        "   0  localhost     0           0  0      -\n"
        "   1  localhost     1           1  1      -\n"
        "   2  localhost     2           2  2      -\n"
        "   3  localhost     3           3  3      -\n"
        "   4  other         0           0  -      -\n");
  for (const char* again : {"::1", "10.0.0.5", "BOX.example.org", "fe80::1:2", "127.8.9.1"}) {
    const std::string name =
        std::string(again).find(':') == std::string::npos ? again : "[" + std::string(again) + "]";
    CHECK_THAT(DryRun("box:1," + name + ":1").out, Contains("2 ranks on 1 host "));
  }
}

TEST_CASE("what is reached as another user or at a port stays a host of its own") {
  CHECK_THAT(DryRun("box:1,you@localhost:1").out, Contains("2 ranks on 2 hosts"));
  CHECK_THAT(DryRun("box:1,me@localhost:1").out, Contains("2 ranks on 1 host"));
}

TEST_CASE("it is said when that is asked for") {
  CHECK(Decide({"-H", "box:1,localhost:1", "true"}).err.empty());
  CHECK(Decide({"-H", "box:1,localhost:1", "--verbose", "true"}).err ==
        "hvdrun: localhost (-H:1:7) is this machine, as box (-H:1:1) is: one host with 2 slots\n");
}

TEST_CASE("max_slots bounds the names together") {
  const FrontWorld world = BoxWorld({{"hf", "box slots=2 max_slots=3\nlocalhost slots=2\n"},
                                     {"few", "box slots=1\nlocalhost slots=1 max_slots=2\n"}});
  CHECK(Decide({"--hostfile", "hf", "true"}, world).err ==
        "hvdrun: box (hf:1) and localhost (hf:2) are both this machine, which then has 4 slots, "
        "more than its max_slots of 3; give it fewer slots here or there\n");
  CHECK(Decide({"--hostfile", "few", "true"}, world).exit_code == -1);
}

}  // namespace
}  // namespace hvd::cli
