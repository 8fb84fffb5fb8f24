// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/shares.h"

#include <catch2/catch.hpp>

#include "hostfile/host_item.h"
#include "tests/cli/membership/parts_table.h"

namespace hvd::cli {

TEST_CASE("a host that is left out comes back when the list has been without it", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}, {"b", 1}});
  table.shares.LeaveHostOut(0, "it fails");
  CHECK(table.roster.host(0).drained);
  table.shares.Listed({{"a", 1}, {"b", 1}});
  CHECK(table.shares.IsLeftOut("a"));
  table.shares.Listed({{"b", 1}});
  CHECK_FALSE(table.shares.IsLeftOut("a"));
  CHECK(table.shares.Find("a") == nullptr);
}

TEST_CASE("three starts that come to nothing leave a share out, and a commit forgives two",
          "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 2}});
  table.roster.host(0).proven = true;
  const RosterMember& first = table.roster.Of(1);
  CHECK(table.shares.CountFailedStart(first) == 1);
  CHECK(table.shares.CountFailedStart(first) == 2);
  table.Begin({1, 2});
  table.shares.NoteKept(0, 1);
  CHECK(table.roster.Of(2).proven);
  for (int times = 1; times <= kFailedStarts; ++times) {
    CHECK_FALSE(table.shares.IsOut("a", 0));
    CHECK(table.shares.CountFailedStart(first) == times);
  }
  CHECK(table.shares.IsOut("a", 0));
  CHECK(table.shares.Usable({"a", 2}) == 1);
  table.shares.Renew("a");
  CHECK(table.shares.Usable({"a", 2}) == 2);
}

TEST_CASE("as many may come as the list has shares, unless the list may change", "[membership]") {
  PartsTable fixed;
  fixed.AddHosts({{"a", 2}, {"b", 3}});
  CHECK(fixed.shares.MostThatMayCome() == 5);
  fixed.shares.LeaveHostOut(1, "it fails");
  CHECK(fixed.shares.MostThatMayCome() == 2);

  ElasticOptions options;
  options.discovery_script = "hosts";
  PartsTable changing(options);
  changing.AddHosts({{"a", 2}});
  CHECK(changing.shares.MostThatMayCome() == kMaxRanks);
}

TEST_CASE("the last share that is left out takes its host along", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}, {"b", 1}});
  for (int death = 1; death <= ShareBudget::kDeaths; ++death) {
    CHECK(table.shares.Died(table.roster.Of(1), false, 1) == (death == ShareBudget::kDeaths));
  }
  table.shares.LeaveOut(1, "its ranks die", 1);
  CHECK(table.roster.host(0).drained);
  CHECK(table.shares.Cools("a", 1));
  CHECK(table.Said().size() == 2);
}

}  // namespace hvd::cli
