// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/epochs.h"

#include <catch2/catch.hpp>

#include "tests/cli/membership/parts_table.h"

namespace hvd::cli {

TEST_CASE("an epoch breaks once, and each cause counts", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}, {"b", 1}});
  table.Begin({1, 2});
  table.wants.Take();
  CHECK_FALSE(table.epochs.IsOver(1));
  table.epochs.Break(0, {Cause::kEnd, "rank 0 died"}, 2);
  table.epochs.Break(1, {Cause::kFollows, "rank 1 failed"}, 3);
  CHECK(table.epochs.IsOver(1));
  CHECK(table.epochs.last_broke());
  CHECK(table.epochs.current().ended_at == 2);
  const auto actions = table.wants.Take();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].kind == MembershipAction::kAbort);
  CHECK(actions[0].host == 0);
  CHECK(table.epochs.causes().Say().size() == 2);
}

TEST_CASE("an epoch is quiet when each host has said so or is gone", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}, {"b", 1}});
  table.Begin({1, 2});
  CHECK(table.epochs.Runs());
  table.epochs.Quiet(0, {});
  CHECK_FALSE(table.epochs.AllQuiet());
  table.roster.LoseHost(1);
  CHECK(table.epochs.AllQuiet());
  CHECK_FALSE(table.epochs.Runs());
}

TEST_CASE("an epoch that broke before its start is quiet where its members stand", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}});
  table.epochs.Adopt(ProposeNext(table.epochs.World({1})), "", 1);
  table.epochs.Break(-1, {Cause::kEnd, "late"}, 2);
  CHECK_FALSE(table.epochs.last_broke());  // nothing of it is to be rolled back
  CHECK_FALSE(table.epochs.AllQuiet());
  table.roster.Of(1).stands = true;
  CHECK(table.epochs.AllQuiet());
}

TEST_CASE("what was committed is lost with the last host that has it", "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}, {"b", 1}});
  table.Begin({1, 2});
  CHECK_FALSE(table.epochs.MayBeCommitted());
  table.epochs.NoteCommit(4);
  CHECK(table.epochs.MayBeCommitted());
  table.epochs.Quiet(0, {4, 3});
  table.epochs.Break(1, {Cause::kEnd, "b lost"}, 2);
  table.roster.LoseHost(1);
  CHECK_FALSE(table.epochs.NoHostHasState());
  table.roster.LoseHost(0);
  CHECK(table.epochs.NoHostHasState());
}

TEST_CASE("a member left the newest epoch, or an unknown one; an older one says nothing",
          "[membership]") {
  PartsTable table;
  table.AddHosts({{"a", 1}});
  table.Begin({1});
  table.Begin({1});
  MemberEnd end;
  end.left = true;
  CHECK(table.epochs.WasLeft(end));
  end.epoch = 1;
  CHECK_FALSE(table.epochs.WasLeft(end));
  end.epoch = 2;
  CHECK(table.epochs.WasLeft(end));
  end.left = false;
  CHECK_FALSE(table.epochs.WasLeft(end));
}

}  // namespace hvd::cli
