// SPDX-License-Identifier: Apache-2.0
// Ranks that others wait for: who holds up an epoch, and who never comes to one.
#include <catch2/catch.hpp>

#include "tests/cli/membership/membership_table.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

// Two ranks on one host, of which the first has come.
MembershipTable OneStands(const ElasticOptions& options) {
  MembershipTable table(2, options);
  table.membership.Listed({{"h0", 2}}, table.now);
  table.membership.HostReady(0, table.now);
  REQUIRE(table.Wants() == "reach0 spawn0:1,2");
  table.Stand({1}, 0);
  REQUIRE(table.Wants().empty());
  return table;
}

}  // namespace

TEST_CASE("the first epoch begins without a rank that does not come") {
  MembershipTable table = OneStands({.min_np = 1, .start_timeout_s = 30});
  table.now += 29;
  table.membership.Tick(table.now);
  CHECK(table.Wants().empty());
  CHECK(table.membership.deadline() <= table.now + 1);
  table.now += 1;
  table.membership.Tick(table.now);
  CHECK(table.Wants() == "propose1:1");
  CHECK_THAT(table.Said(), Contains("1 rank on h0 has not called hvd.init() within "
                                    "--start-timeout 30 s: the first epoch begins without"));
  SECTION("it comes later, and joins") {
    table.membership.Started(1, table.now);
    table.Stand({2}, 0);
    CHECK(table.Wants() == "announce1");
  }
  SECTION("it never comes, and is replaced") {
    table.membership.Started(1, table.now);
    table.now += 571;
    table.membership.Tick(table.now);
    CHECK(table.Wants() == "retire2");
    CHECK_THAT(table.Said(), Contains("has not called hvd.init() within --elastic-timeout 600 s"));
  }
}

TEST_CASE("fewer than --min-np do not begin, and whoever has not come is named") {
  MembershipTable table = OneStands({.min_np = 2, .start_timeout_s = 30, .elastic_timeout_s = 60});
  table.now += 31;
  table.membership.Tick(table.now);
  CHECK(table.Wants().empty());
  CHECK_THAT(table.Said(), Contains("1 of at least 2 ranks are there; 1 rank on h0 has not called "
                                    "hvd.init(); more are waited for"));
  table.now += 30;
  table.membership.Tick(table.now);
  CHECK_THAT(table.Wants(), Contains("end"));
  CHECK_THAT(table.end_text, Contains("a rank on h0 has not called hvd.init() within"));
}

TEST_CASE("nobody is awaited before another has come") {
  MembershipTable table(2, {.min_np = 1, .start_timeout_s = 30, .elastic_timeout_s = 60});
  table.membership.Listed({{"h0", 2}}, table.now);
  table.membership.HostReady(0, table.now);
  REQUIRE(table.Wants() == "reach0 spawn0:1,2");
  table.now += 1000;
  table.membership.Tick(table.now);
  CHECK(table.Wants().empty());
  table.Stand({1}, 0);
  CHECK(table.Wants().empty());
  table.Stand({2}, 0);
  CHECK(table.Wants() == "propose1:1,2");
}

TEST_CASE("a rank that was given up has not ended well, so the job is not done without it") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  table.membership.Stalled(2, "rank 1 on h0 is held", table.now);
  CHECK(table.Wants() == "abort1 retire2");
  table.EndWell(1);
  table.Die(2, {.signal = 9, .own = false, .what = "rank 1 was killed"});
  CHECK_FALSE(table.membership.closed());
  CHECK_THAT(table.Wants(), Contains("spawn0"));
}

TEST_CASE("who is waited for outside any collective") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  REQUIRE(table.membership.WhoIsAwaited().empty());
  SECTION("its epoch has ended, and it has not come back") {
    table.now += 5;
    table.Die(2);
    const auto awaited = table.membership.WhoIsAwaited();
    REQUIRE(awaited.size() == 1);
    CHECK(awaited[0].member == 1);
    CHECK(awaited[0].since == table.now);
    table.Stand({1}, 1);
    CHECK(table.membership.WhoIsAwaited().empty());
  }
  SECTION("a new rank waits for its next commit") {
    table.Die(2);
    table.Quiet({0}, 1, 1);
    table.Stand({1}, 1);
    CHECK_THAT(table.Wants(), Contains("propose2:1"));
    table.membership.Started(2, table.now);
    REQUIRE(table.membership.WhoIsAwaited().empty());
    table.now += 2;
    table.Stand({3}, 0);
    CHECK_THAT(table.Wants(), Contains("announce2"));
    const auto awaited = table.membership.WhoIsAwaited();
    REQUIRE(awaited.size() == 1);
    CHECK(awaited[0].member == 1);
    CHECK(awaited[0].since == table.now);
  }
}

}  // namespace hvd::cli
