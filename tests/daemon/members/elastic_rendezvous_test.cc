// SPDX-License-Identifier: Apache-2.0
// HostRendezvous in an elastic job: quiet epochs, members that come to used slots, removed ones.
#include <algorithm>
#include <catch2/catch.hpp>

#include "daemon/members/host_rendezvous.h"

namespace hvd::daemon {
namespace {

using Kind = EpochAction::Kind;

EpochPlan PlanOf(uint64_t epoch, std::vector<int> slots) {
  EpochPlan plan;
  plan.epoch = epoch;
  plan.host = 0;
  plan.topology = Topology({HostShape{"here", static_cast<int>(slots.size())}});
  plan.slots = std::move(slots);
  return plan;
}

int Count(const EpochActions& actions, Kind kind) {
  return static_cast<int>(
      std::count_if(actions.begin(), actions.end(),
                    [kind](const EpochAction& action) { return action.kind == kind; }));
}

// These slots' members have asked, and are in the epoch, which runs.
void Run(HostRendezvous* book, uint64_t epoch, const std::vector<int>& slots) {
  for (const int slot : slots) book->Join(slot);
  book->Propose(PlanOf(epoch, slots));
  for (const int slot : slots) book->Address(slot, epoch, "a", 8192);
  book->TableCame(epoch);
  for (const int slot : slots) book->Ready(slot, epoch);
  book->GoCame(epoch);
}

TEST_CASE("a host is quiet once, when the last member has left") {
  HostRendezvous book(8, true);
  Run(&book, 1, {0, 1});
  CHECK(Count(book.Abort(1, "host1 lost"), Kind::kQuiet) == 0);
  CHECK(Count(book.Leave(0, 1), Kind::kQuiet) == 0);
  const EpochActions last = book.Leave(1, 1);
  REQUIRE(Count(last, Kind::kQuiet) == 1);
  CHECK(last.back().epoch == 1);
  CHECK(Count(book.Gone(1, "it ended"), Kind::kQuiet) == 0);
}

TEST_CASE("a static job's host says nothing of quiet") {
  HostRendezvous book(2);
  Run(&book, 1, {0, 1});
  CHECK(Count(book.Gone(0, "it died"), Kind::kQuiet) == 0);
  CHECK(Count(book.Leave(1, 1), Kind::kQuiet) == 0);
}

TEST_CASE("one that is dead is waited for no more, one that only lost its link is") {
  HostRendezvous book(8, true);
  Run(&book, 1, {0, 1, 2});
  CHECK(Count(book.Gone(0, "rank 0 was killed"), Kind::kQuiet) == 0);
  CHECK(Count(book.Gone(1, "rank 1 closed its link", true), Kind::kQuiet) == 0);
  CHECK(Count(book.Leave(2, 1), Kind::kQuiet) == 0);
  CHECK(Count(book.Gone(1, "rank 1 was killed"), Kind::kQuiet) == 1);
}

TEST_CASE("who asks anew has left the broken epoch, and stands") {
  HostRendezvous book(8, true);
  Run(&book, 1, {0, 1});
  book.Gone(1, "rank 1 was killed");
  const EpochActions asked = book.Join(0);
  CHECK(Count(asked, Kind::kQuiet) == 1);
  CHECK(Count(asked, Kind::kStands) == 1);
}

TEST_CASE("the next epoch is without the dead, and their cause does not follow it") {
  HostRendezvous book(8, true);
  Run(&book, 1, {0, 1});
  book.Gone(1, "rank 1 was killed");
  book.Join(0);
  const EpochActions proposed = book.Propose(PlanOf(2, {0}));
  CHECK(Count(proposed, Kind::kStart) == 1);
  CHECK(Count(proposed, Kind::kAbort) == 0);
}

TEST_CASE("an epoch that breaks before anybody is in it is quiet at once") {
  HostRendezvous book(8, true);
  book.Propose(PlanOf(1, {0, 1}));
  CHECK(Count(book.Abort(1, "host1 lost"), Kind::kQuiet) == 1);
  const EpochActions late = book.Join(0);
  CHECK(Count(late, Kind::kRefuse) == 1);
  CHECK(Count(late, Kind::kQuiet) == 0);
  CHECK(Count(book.Join(0), Kind::kStands) == 1);
}

TEST_CASE("a second death while they meet ends that epoch, and its members stand again") {
  HostRendezvous book(8, true);
  for (const int slot : {0, 1, 2}) book.Join(slot);
  book.Propose(PlanOf(1, {0, 1, 2}));
  book.Address(0, 1, "a", 8192);
  const EpochActions died = book.Gone(1, "rank 1 was killed");
  CHECK(Count(died, Kind::kAbort) == 1);
  CHECK(Count(died, Kind::kRefuse) == 2);
  CHECK(Count(book.Join(0), Kind::kStands) == 1);
  CHECK(Count(book.Join(2), Kind::kQuiet) == 1);
}

TEST_CASE("a slot is another member's after a reset, which knows of no epoch before") {
  HostRendezvous book(8, true);
  Run(&book, 1, {0, 1});
  book.Gone(1, "rank 1 was killed");
  book.Reset(1);
  CHECK_FALSE(book.attendance().joined_ever(1));
  CHECK(book.attendance().newest_plan(1) == nullptr);
  const EpochActions asked = book.Join(1);
  CHECK(Count(asked, Kind::kStands) == 1);
  book.Join(0);
  CHECK(Count(book.Propose(PlanOf(2, {0, 1})), Kind::kStart) == 2);
}

TEST_CASE("a reset of a dead member's slot leaves the others in their epoch") {
  HostRendezvous book(8, true);
  Run(&book, 1, {0, 1});
  book.Gone(1, "rank 1 was killed");
  book.Reset(1);
  CHECK(book.attendance().in_epoch(0));
  CHECK(Count(book.Leave(0, 1), Kind::kQuiet) == 1);
}

TEST_CASE("a removed member is refused, now or when it asks") {
  HostRendezvous book(8, true);
  Run(&book, 1, {0, 1});
  CHECK(book.Remove(1, "host0 has one slot now").empty());
  book.Leave(1, 1);
  CHECK(Count(book.Join(1), Kind::kRemove) == 1);
  book.Leave(0, 1);
  book.Join(0);
  const EpochActions standing = book.Remove(0, "host0 is to be given back");
  REQUIRE(Count(standing, Kind::kRemove) == 1);
  CHECK(standing.front().text == "host0 is to be given back");
}

TEST_CASE(
    "one that has died while it stood is in no epoch, whatever the driver has not heard yet") {
  HostRendezvous book(8, true);
  for (const int slot : {0, 1}) book.Join(slot);
  book.Gone(1, "rank 1 was killed");
  SECTION("with others: they are refused, and stand again") {
    const EpochActions proposed = book.Propose(PlanOf(1, {0, 1}));
    CHECK(Count(proposed, Kind::kCreate) == 0);
    REQUIRE(Count(proposed, Kind::kRefuse) == 1);
    CHECK(proposed.back().text == "rank 1 was killed");
    CHECK(Count(proposed, Kind::kQuiet) == 1);
    CHECK_FALSE(book.attendance().in_epoch(1));
    CHECK(Count(book.Abort(1, "rank 1 was killed"), Kind::kQuiet) == 0);
    CHECK(Count(book.Join(0), Kind::kStands) == 1);
    CHECK(Count(book.Propose(PlanOf(2, {0})), Kind::kStart) == 1);
  }
  SECTION("alone") {
    const EpochActions proposed = book.Propose(PlanOf(1, {1}));
    CHECK(Count(proposed, Kind::kQuiet) == 1);
    CHECK(Count(proposed, Kind::kCreate) == 0);
  }
}

TEST_CASE("one that stood and has no link any more enters when it asks again, not before") {
  HostRendezvous book(8, true);
  for (const int slot : {0, 1}) book.Join(slot);
  book.StandsNoMore(1);
  const EpochActions proposed = book.Propose(PlanOf(1, {0, 1}));
  CHECK(Count(proposed, Kind::kStart) == 1);
  CHECK_FALSE(book.attendance().in_epoch(1));
  CHECK(Count(book.Join(1), Kind::kStart) == 1);
}

TEST_CASE("why one took no part in an epoch does not follow it into the next") {
  HostRendezvous book(8, true);
  for (const int slot : {0, 1}) book.Join(slot);
  book.Propose(PlanOf(1, {0, 1}));
  book.Gone(1, "hvd_init of rank 1 failed");
  for (const int slot : {0, 1}) CHECK(Count(book.Join(slot), Kind::kStands) == 1);
  const EpochActions proposed = book.Propose(PlanOf(2, {0, 1}));
  CHECK(Count(proposed, Kind::kStart) == 2);
  CHECK(Count(proposed, Kind::kAbort) == 0);
}

TEST_CASE("a stop refuses those that stand") {
  HostRendezvous book(8, true);
  book.Join(0);
  CHECK(Count(book.Stop("interrupted"), Kind::kRefuse) == 1);
}

TEST_CASE("a long life leaves no epoch behind") {
  HostRendezvous book(8, true);
  for (uint64_t epoch = 1; epoch < 200; ++epoch) {
    const int victim = epoch % 2 == 0 ? 1 : 2;
    Run(&book, epoch, {0, victim});
    book.Gone(victim, "it was killed");
    book.Leave(0, epoch);
    book.Reset(victim);
  }
  CHECK(book.attendance().plan(1) == nullptr);
  CHECK(book.attendance().plan(150) == nullptr);
}

}  // namespace
}  // namespace hvd::daemon
