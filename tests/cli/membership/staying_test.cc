// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/staying.h"

#include <catch2/catch.hpp>

#include "tests/cli/membership/parts_table.h"

namespace hvd::cli {

using Numbers = std::set<uint64_t>;

TEST_CASE("whoever is in the epoch stays before those who join, then the older hosts'",
          "[membership]") {
  PartsTable table({}, 2);
  table.AddHosts({{"a", 2}, {"b", 2}});
  table.staying.Choose();
  CHECK(table.staying.members() == Numbers{1, 2});
  table.Begin({3, 4});
  table.staying.Choose();
  CHECK(table.staying.members() == Numbers{3, 4});
}

TEST_CASE("nobody stays beyond the list, nor on a host that is to go", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 2}, {"b", 1}});
  table.shares.Listed({{"a", 1}, {"b", 1}});
  table.staying.Choose();
  CHECK(table.staying.members() == Numbers{1, 3});
  table.shares.Drain(0, 1);
  table.staying.Choose();
  CHECK(table.staying.members() == Numbers{3});
}

TEST_CASE("those of one host that is to go stay while nobody else has the state", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}, {"b", 1}, {"c", 1}});
  table.Begin({1, 2});
  table.shares.Drain(0, 1);
  table.shares.Drain(1, 1);
  table.Said();
  table.staying.Choose();
  CHECK(table.staying.members() == Numbers{1, 3});
  CHECK(table.staying.kept() == Numbers{1});
  for (int times = 0; times < 2; ++times) table.staying.SayKept(false);
  CHECK(table.Said().size() == 1);  // once
  table.Begin({1, 3});
  table.staying.Choose();
  CHECK(table.staying.kept().empty());
  CHECK(table.staying.members() == Numbers{3});
}

TEST_CASE("survivors stand when all who live and stay do", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 3}});
  table.Begin({1, 2, 3});
  table.staying.Choose();
  CHECK_FALSE(table.staying.SurvivorsStand());
  table.roster.Of(1).stands = true;
  table.roster.Of(2).alive = false;
  CHECK_FALSE(table.staying.SurvivorsStand());
  table.staying.Retire(3, false, "late");
  CHECK(table.staying.SurvivorsStand());
  CHECK(table.staying.Standing() == Numbers{1});
  CHECK(table.roster.Of(3).given_up);
}

}  // namespace hvd::cli
