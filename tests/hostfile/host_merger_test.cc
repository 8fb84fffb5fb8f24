// SPDX-License-Identifier: Apache-2.0
#include "hostfile/host_merger.h"

#include <catch2/catch.hpp>

#include "tests/hostfile/show_hosts.h"

namespace hvd {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("a repeated host gets the slots of all its mentions") {
  CHECK(ShowFile("a slots=2\na slots=2\n") == "a x4");
  CHECK(ShowFile("a\nb\na\n") == "a x2, b x1");
  CHECK(ShowFile("a slots=2 max_slots=4\na slots=2\n") == "a x4 max 4");
  CHECK(ShowFile("a slots=2\na max_slots=3\n") == "a x3 max 3");
  CHECK(ShowFile("a max_slots=9\na max_slots=5\n") == "a x2 max 5");
  CHECK(ShowFile("u@a port=7\na user=u port=7 slots=2\n") == "u@a:7 x3");
}

TEST_CASE("mentions that contradict each other are an error that names both places") {
  CHECK(ShowFile("u@a\n\nv@a\n") ==
        "hosts:3:1: host a has v here but u at hosts:1\n"
        "  v@a\n"
        "  ^\n"
        "  give a host the same user wherever it is mentioned, or another name");
  CHECK_THAT(ShowFile("a port=1\na port=2"),
             StartsWith("hosts:2:1: host a has 2 here but 1 at hosts:1"));
  CHECK_THAT(ShowFile("a\na port=2"), Contains("has 2 here but no port at hosts:1"));
  CHECK_THAT(ShowFile("u@a\na"), Contains("has no user here but u at hosts:1"));
  CHECK_THAT(ShowList("u@a:2,v@a:2"), StartsWith("-H:1:7: ") && Contains("u at -H:1:1"));
}

TEST_CASE("more slots than max_slots are an error") {
  CHECK_THAT(ShowFile("a slots=5 max_slots=4"), Contains("slots (5) are more than max_slots (4)"));
  CHECK_THAT(ShowFile("a slots=3 max_slots=4\na slots=2"),
             StartsWith("hosts:2:1: ") && Contains("the slots of hosts:1") &&
                 Contains("has 5, more than its max_slots of 4"));
  CHECK_THAT(ShowList("a:65536,a"), StartsWith("-H:1:9: ") && Contains("more than"));
}

}  // namespace
}  // namespace hvd
