// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/host_rendezvous.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace hvd::daemon {
namespace {

using Kind = EpochAction::Kind;

// "create start:0 refuse:1(text)": short enough to compare.
std::string Words(const EpochActions& actions) {
  static const char* const kNames[] = {"create",    "start",  "stands",  "withdrawn", "take",
                                       "addresses", "table",  "ready",   "go",        "left",
                                       "abort",     "refuse", "dispose", "quiet",     "remove"};
  std::string words;
  for (const EpochAction& action : actions) {
    if (!words.empty()) words += " ";
    words += kNames[static_cast<int>(action.kind)];
    const bool of_all = action.kind == Kind::kCreate || action.kind == Kind::kTake;
    if (action.slot >= 0 && !of_all) words += std::to_string(action.slot);
  }
  return words;
}

// The second of two hosts: its ranks count from `first_rank`, in the order of `slots`.
EpochPlan PlanOf(uint64_t epoch, std::vector<int> slots, int first_rank = 0) {
  EpochPlan plan;
  plan.epoch = epoch;
  plan.host = first_rank == 0 ? 0 : 1;
  plan.slots = std::move(slots);
  const HostShape here{"here", static_cast<int>(plan.slots.size())};
  plan.topology = first_rank == 0 ? Topology({here}) : Topology({{"there", first_rank}, here});
  return plan;
}

// With the same members in the first three epochs.
HostRendezvous Proposed(int slots, int first_rank) {
  HostRendezvous book(slots);
  std::vector<int> all(slots);
  std::iota(all.begin(), all.end(), 0);
  for (const uint64_t epoch : {1, 2, 3}) book.Propose(PlanOf(epoch, all, first_rank));
  return book;
}

// Two ranks through to the running epoch.
HostRendezvous Running(uint64_t epoch = 1) {
  HostRendezvous book = Proposed(2, 4);
  for (int rank : {0, 1}) book.Join(rank);
  for (int rank : {0, 1}) book.Address(rank, epoch, "a", 8192);
  book.TableCame(epoch);
  for (int rank : {0, 1}) book.Ready(rank, epoch);
  book.GoCame(epoch);
  return book;
}

TEST_CASE("an epoch from join to leave") {
  HostRendezvous book = Proposed(2, 0);
  CHECK(Words(book.Join(1)) == "create start1");
  CHECK(Words(book.Join(0)) == "start0");
  CHECK(Words(book.Address(0, 1, "zero", 8192)) == "take");
  CHECK(Words(book.Address(1, 1, "one", 8192)) == "addresses");
  CHECK(book.attendance().Find(1)->addresses() == std::vector<std::string>{"zero", "one"});
  CHECK(Words(book.TableCame(1)) == "table0 table1");
  CHECK(Words(book.Ready(0, 1)) == "");
  CHECK(Words(book.Ready(1, 1)) == "ready");
  CHECK(Words(book.GoCame(1)) == "go0 go1");
  CHECK(Words(book.Leave(0, 1)) == "left0");
  CHECK(!book.attendance().left(1));
  CHECK(Words(book.Leave(1, 1)) == "left1 dispose");
  CHECK(book.attendance().left(1));
  CHECK(!book.attendance().after_abort(0));
}

TEST_CASE("an early rank joins the next epoch while others are still in this one") {
  HostRendezvous book = Running();
  CHECK(Words(book.Leave(0, 1)) == "left0");
  CHECK(Words(book.Join(0)) == "create start0");
  CHECK(Words(book.Leave(1, 1)) == "left1 dispose");
  CHECK(Words(book.Join(1)) == "start1");
}

TEST_CASE("a process that starts anew in the same rank gets the rank's next epoch") {
  HostRendezvous book = Running();
  book.Leave(0, 1);
  book.Leave(1, 1);
  const EpochActions actions = book.Join(0);
  REQUIRE(Words(actions) == "create start0");
  CHECK(actions[0].epoch == 2);
}

TEST_CASE("who waits for an epoch that is not to be is refused, and so is who comes later") {
  HostRendezvous book = Proposed(3, 0);
  book.Join(0);
  book.Gone(2, "rank 2 exited with code 0 before hvd's init");
  CHECK(book.attendance().refused(0));
  CHECK_FALSE(book.attendance().refused(1));
  book.Join(1);
  CHECK(book.attendance().refused(1));
  CHECK_FALSE(book.attendance().refused(2));
}

TEST_CASE("an aborted epoch refuses a rank once, and its next hvd_init is for the next epoch") {
  HostRendezvous book = Proposed(2, 0);
  book.Join(0);
  CHECK(Words(book.Abort(1, "rank 7 left before the epoch began")) == "abort refuse0");
  CHECK(Words(book.Join(1)) == "refuse1");
  const EpochActions actions = book.Join(1);
  REQUIRE(Words(actions) == "create start1");
  CHECK(actions[0].epoch == 2);
  CHECK(Words(book.Abandon(0)) == "dispose");
  CHECK_FALSE(book.attendance().left(0));
  CHECK(Words(book.Join(0)) == "start0");
}

TEST_CASE("whoever abandons its aborted epoch keeps nobody from the next") {
  HostRendezvous book = Running();
  CHECK(Words(book.Abandon(0)) == "");  // it lives
  book.Abort(1, "rank 9 died");
  CHECK(Words(book.Abandon(0)) == "");
  CHECK(Words(book.Abandon(1)) == "dispose");
  CHECK(Words(book.Abandon(1)) == "");
  CHECK(Words(book.Join(1)) == "create start1");
  CHECK(Words(book.Join(0)) == "start0");
}

TEST_CASE("a death inside a running epoch aborts it with its cause") {
  HostRendezvous book = Running();
  const EpochActions actions = book.Gone(1, "rank 5 died");
  REQUIRE(Words(actions) == "abort");
  CHECK(actions[0].text == "rank 5 died");
  CHECK(book.attendance().after_abort(0));
  CHECK(!book.attendance().left(1));
  CHECK(Words(book.Leave(0, 1)) == "left0 dispose");
}

TEST_CASE("a death before its join frees those who wait, and those who come later") {
  HostRendezvous book = Proposed(3, 0);
  book.Join(0);
  CHECK(Words(book.Gone(2, "rank 2 died")) == "abort refuse0");
  const EpochActions late = book.Join(1);
  REQUIRE(Words(late) == "refuse1");
  CHECK(late[0].text == "rank 2 died");
}

TEST_CASE("a death before any join is remembered") {
  HostRendezvous book = Proposed(2, 0);
  CHECK(Words(book.Gone(1, "rank 1 died")) == "");
  CHECK(Words(book.Join(0)) == "create start0 abort refuse0");
}

TEST_CASE("a rank that has left may end") {
  HostRendezvous book = Running();
  book.Leave(1, 1);
  CHECK(Words(book.Gone(1, "exited")) == "");
  CHECK(!book.attendance().after_abort(1));
}

TEST_CASE("different sizes of memory are refused with the ranks' names") {
  HostRendezvous book = Proposed(2, 4);
  book.Join(0);
  book.Join(1);
  CHECK(Words(book.Address(0, 1, "zero", 8192)) == "take");
  const EpochActions actions = book.Address(1, 1, "one", 16384);
  REQUIRE(Words(actions) == "abort refuse0 refuse1");
  CHECK(actions[0].text.find("rank 5 asks for 16384") != std::string::npos);
  CHECK(actions[0].text.find("rank 4 for 8192") != std::string::npos);
}

TEST_CASE("messages out of turn are refused, not believed") {
  HostRendezvous book = Proposed(2, 0);
  CHECK(Words(book.Address(0, 1, "a", 8192)) == "refuse0");
  book.Join(0);
  CHECK(Words(book.Ready(0, 1)) == "refuse0");
  CHECK(Words(book.Join(0)) == "refuse0");
  CHECK(Words(book.Leave(1, 1)) == "");
  CHECK(Words(book.TableCame(9)) == "");
  CHECK(Words(book.GoCame(9)) == "");
}

TEST_CASE("the driver's abort reaches the current epoch once, and latecomers") {
  HostRendezvous book = Proposed(2, 0);
  book.Join(0);
  CHECK(Words(book.Abort(0, "host lost")) == "abort refuse0");
  CHECK(Words(book.Abort(1, "again")) == "");
  const EpochActions late = book.Join(1);
  REQUIRE(Words(late) == "refuse1");
  CHECK(late[0].text == "host lost");
}

TEST_CASE("an abort before anybody has joined holds for the first epoch") {
  HostRendezvous book = Proposed(1, 0);
  CHECK(Words(book.Abort(1, "rank 7 died")) == "");
  CHECK(Words(book.Join(0)) == "refuse0");
}

TEST_CASE("an abort of an epoch that is over changes nothing") {
  HostRendezvous book = Running();
  book.Leave(0, 1);
  book.Leave(1, 1);
  CHECK(Words(book.Abort(1, "late")) == "");
  CHECK(Words(book.Join(0)) == "create start0");
}

TEST_CASE("an abort is nothing to a rank that never asked for its epoch, until it does") {
  HostRendezvous book = Proposed(3, 0);
  book.Abort(0, "rank 9 exited");
  for (int rank : {0, 1, 2}) CHECK(!book.attendance().after_abort(rank));
  CHECK(Words(book.Join(1)) == "refuse1");
  CHECK(!book.attendance().after_abort(0));
  CHECK(book.attendance().after_abort(1));
  book.Stop("stopped");
  CHECK(book.attendance().after_abort(0));
}

TEST_CASE("after a stop nobody joins") {
  HostRendezvous book = Running();
  CHECK(Words(book.Stop("stopped by the user")) == "abort");
  book.Leave(0, 1);
  CHECK(Words(book.Join(0)) == "refuse0");
}

TEST_CASE("leaving before the start frees those who wait for it") {
  HostRendezvous book = Proposed(2, 0);
  book.Join(0);
  book.Join(1);
  CHECK(Words(book.Leave(1, 1)) == "left1 abort refuse0");
}

TEST_CASE("whoever asks before the proposal stands until it comes, once") {
  HostRendezvous book(2);
  const EpochActions stands = book.Join(1);
  REQUIRE(Words(stands) == "stands1");
  CHECK(stands[0].epoch == 0);
  CHECK(Words(book.Propose(PlanOf(1, {0, 1}))) == "create start1");
  CHECK(Words(book.Propose(PlanOf(2, {0, 1}))) == "");
  CHECK(Words(book.Join(0)) == "start0");
}

TEST_CASE("a member passes over the epochs that it is not in") {
  HostRendezvous book(2);
  book.Propose(PlanOf(1, {0}));
  const EpochActions stands = book.Join(1);
  CHECK(Words(stands) == "stands1");
  CHECK(Words(book.Join(0)) == "create start0");
  CHECK(Words(book.Address(0, 1, "a", 8192)) == "take addresses");  // it is all of the host
  CHECK(Words(book.Propose(PlanOf(2, {1, 0}))) == "create start1");
  REQUIRE(book.attendance().plan(2) != nullptr);
  CHECK(book.attendance().plan(2)->LocalRankOf(1) == 0);
}

TEST_CASE("addresses are in the order of the epoch's ranks, whatever their slots") {
  HostRendezvous book(2);
  book.Propose(PlanOf(1, {1, 0}));
  for (int slot : {0, 1}) book.Join(slot);
  book.Address(0, 1, "of slot 0", 8192);
  book.Address(1, 1, "of slot 1", 8192);
  CHECK(book.attendance().Find(1)->addresses() ==
        std::vector<std::string>{"of slot 1", "of slot 0"});
}

TEST_CASE("a join that is taken back can be made again, and nobody is told of an abort") {
  HostRendezvous book(2);
  book.Propose(PlanOf(1, {0, 1}));
  for (int slot : {0, 1}) book.Join(slot);
  CHECK(Words(book.Address(1, 1, "b", 8192)) == "take");
  CHECK(Words(book.Withdraw(0, 1)) == "withdrawn0 refuse0");
  CHECK_FALSE(book.attendance().in_epoch(0));
  CHECK_FALSE(book.attendance().joined_ever(0));
  CHECK(book.attendance().in_live_epoch(1));
  SECTION("and then the epoch goes on") {
    CHECK(Words(book.Join(0)) == "start0");
    CHECK(Words(book.Address(0, 1, "a", 8192)) == "addresses");
  }
  SECTION("but not once an address is given") {
    CHECK(Words(book.Withdraw(1, 1)) == "refuse1");
    CHECK(book.attendance().in_epoch(1));
  }
  SECTION("a death after it is as one before the join") {
    CHECK(Words(book.Gone(0, "rank 0 died")) == "abort refuse1");
  }
}

TEST_CASE("a join is taken back too late when the epoch has been aborted: one refusal is enough") {
  HostRendezvous book(2);
  book.Propose(PlanOf(1, {0, 1}));
  book.Join(0);
  CHECK(Words(book.Abort(1, "rank 7 died")) == "abort refuse0");
  CHECK(Words(book.Withdraw(0, 1)) == "");
}

TEST_CASE("a stop refuses those who stand") {
  HostRendezvous book(2);
  book.Join(1);
  CHECK(Words(book.Stop("stopped by the user")) == "refuse1");
  CHECK(book.attendance().refused(1));
  CHECK(Words(book.Propose(PlanOf(1, {0, 1}))) == "");
}

TEST_CASE("a close lets a running epoch live until one of its members is gone, and begins none") {
  HostRendezvous book = Running();
  CHECK(Words(book.Close("stopped by SIGTERM")) == "");
  CHECK(book.attendance().in_live_epoch(0));
  CHECK(book.attendance().after_abort(0));  // whatever it does from now on
  SECTION("it leaves in good order") {
    CHECK(Words(book.Leave(0, 1)) == "left0");
    CHECK(book.attendance().in_live_epoch(1));
    CHECK(Words(book.Join(0)) == "refuse0");
    CHECK(Words(book.Leave(1, 1)) == "left1 dispose");
  }
  SECTION("it dies") {
    const EpochActions actions = book.Gone(1, "rank 5 was killed by signal 15");
    REQUIRE(Words(actions) == "abort");
    CHECK(actions[0].text == "stopped by SIGTERM; rank 5 was killed by signal 15");
  }
  SECTION("the stop follows") {
    CHECK(Words(book.Stop("stopped by SIGTERM; rank 0 died")) == "abort");
    CHECK_FALSE(book.attendance().in_live_epoch(0));
  }
}

TEST_CASE("a close ends an epoch that has not begun for all, and refuses those who stand") {
  SECTION("begins") {
    HostRendezvous book = Proposed(2, 0);
    book.Join(0);
    CHECK(Words(book.Close("stopped")) == "abort refuse0");
    CHECK(Words(book.Join(1)) == "refuse1");
  }
  SECTION("stand") {
    HostRendezvous book(2);
    book.Join(1);
    CHECK(Words(book.Close("stopped")) == "refuse1");
    CHECK(Words(book.Propose(PlanOf(1, {0, 1}))) == "");
  }
}

}  // namespace
}  // namespace hvd::daemon
