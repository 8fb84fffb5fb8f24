// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/local_epoch.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

using Stage = LocalEpoch::Stage;

// Slots 0 and 2 of three are ranks 4 and 5, on the second of two hosts.
LocalEpoch Proposed() {
  auto plan = std::make_shared<EpochPlan>();
  plan->epoch = 1;
  plan->host = 1;
  plan->slots = {0, 2};
  plan->topology = Topology({{"there", 4}, {"here", 2}});
  LocalEpoch epoch(3);
  epoch.Propose(std::move(plan));
  return epoch;
}

TEST_CASE("only the first that enters an epoch has its memory made") {
  LocalEpoch epoch = Proposed();
  CHECK_FALSE(epoch.begun());
  CHECK(epoch.Enter(2));
  CHECK_FALSE(epoch.Enter(0));
  CHECK(epoch.created());
}

TEST_CASE("a step counts only behind the one before it") {
  LocalEpoch epoch = Proposed();
  CHECK_FALSE(epoch.Address(0, "early"));
  epoch.Enter(0);
  CHECK_FALSE(epoch.Ready(0));
  CHECK(epoch.Address(0, "zero"));
  CHECK_FALSE(epoch.Withdraw(0));
  CHECK(epoch.Ready(0));
  CHECK_FALSE(epoch.Ready(0));
  CHECK(epoch.Go(0));
  CHECK(epoch.IsInside(0));
  CHECK_FALSE(epoch.IsWaiting(0));
  CHECK(epoch.Leave(0));  // it has run
}

TEST_CASE("slots that an epoch does not list are not waited for") {
  LocalEpoch epoch = Proposed();
  CHECK_FALSE(epoch.Lists(1));
  for (const int slot : {0, 2}) epoch.Enter(slot);
  epoch.Address(0, "zero");
  CHECK_FALSE(epoch.All(Stage::kAddressed));
  epoch.Address(2, "two");
  CHECK(epoch.All(Stage::kAddressed));
  CHECK(epoch.addresses() == std::vector<std::string>{"zero", "two"});
}

TEST_CASE("members that ask for other bytes than the first are named") {
  LocalEpoch epoch = Proposed();
  CHECK(epoch.Take(2, 8192));
  CHECK_FALSE(epoch.Take(0, 4096));
  CHECK(epoch.Conflict(2, 8192).empty());
  CHECK(epoch.Conflict(0, 4096) ==
        "rank 4 asks for 4096 bytes of host memory, rank 5 for 8192; all ranks of a host must run "
        "with the same HVD settings");
}

TEST_CASE("the first cause of an abort stays") {
  LocalEpoch epoch = Proposed();
  CHECK(epoch.Abort("rank 4 died"));
  CHECK_FALSE(epoch.Abort("rank 5 died"));
  CHECK(epoch.cause() == "rank 4 died");
  CHECK(epoch.begun());
}

TEST_CASE("one that lives behind its loss keeps its epoch in use, and its end frees it") {
  LocalEpoch epoch = Proposed();
  for (const int slot : {0, 2}) epoch.Enter(slot);
  epoch.Leave(2);
  CHECK(epoch.Lose(0, true));
  CHECK_FALSE(epoch.IsInside(0));
  CHECK_FALSE(epoch.Unused());
  CHECK(epoch.Lose(0, false));
  CHECK(epoch.Unused());
}

TEST_CASE("a loss is nothing to an epoch that nobody has entered, nor to one that was left") {
  LocalEpoch epoch = Proposed();
  CHECK_FALSE(epoch.Lose(0, false));
  epoch.Enter(2);
  CHECK(epoch.Lose(0, false));  // others have come, and it never will
  epoch.Leave(2);
  CHECK_FALSE(epoch.Lose(2, false));
}

TEST_CASE("quiet is told once, and only of a proposed epoch") {
  LocalEpoch unknown(2);
  CHECK_FALSE(unknown.TakeQuiet());
  LocalEpoch epoch = Proposed();
  CHECK(epoch.TakeQuiet());
  CHECK_FALSE(epoch.TakeQuiet());
}

}  // namespace
}  // namespace hvd::daemon
