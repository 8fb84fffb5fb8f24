// SPDX-License-Identifier: Apache-2.0
#include "cli/job/members.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

const Topology kTwoHosts({{"a", 2}, {"b", 1}});

TEST_CASE("a job starts with a member a rank, and none is 0") {
  const Members members(kTwoHosts);
  int rank = 0;
  for (const int host : {0, 1}) {
    const v1::SpawnSlots spawn = members.Seats(host, {});
    for (const v1::Seat& seat : spawn.seats()) {
      CHECK(seat.member() != 0);
      CHECK(members.RankOf(seat.member()) == rank++);
    }
  }
  CHECK(rank == 3);
  CHECK(members.RankOf(0) == -1);
  CHECK(members.RankOf(99) == -1);
}

TEST_CASE("epochs are numbered from one, each with all members in the order of their ranks") {
  Members members(kTwoHosts);
  CHECK(members.proposed() == 0);
  for (const uint64_t number : {1, 2}) {
    const v1::EpochPropose propose = members.Propose();
    CHECK(propose.epoch() == number);
    CHECK(members.proposed() == number);
    REQUIRE(propose.hosts_size() == 2);
    int rank = 0;
    for (const v1::EpochHost& host : propose.hosts()) {
      int slot = 0;
      for (const v1::Seat& seat : host.members()) {
        CHECK(members.RankOf(seat.member()) == rank++);
        CHECK(static_cast<int>(seat.slot()) == slot++);
      }
    }
    CHECK(rank == 3);
    CHECK(propose.hosts(1).host() == 1);
    CHECK(propose.hosts(1).name() == "b");
  }
}

TEST_CASE("seats say whose stdin is hvdrun's") {
  const Members members(kTwoHosts);
  const auto last = [](int rank) { return rank == 2; };
  CHECK(!members.Seats(0, last).seats(0).stdin());
  CHECK(!members.Seats(0, last).seats(1).stdin());
  REQUIRE(members.Seats(1, last).seats_size() == 1);
  CHECK(members.Seats(1, last).seats(0).stdin());
}

}  // namespace
}  // namespace hvd::cli
