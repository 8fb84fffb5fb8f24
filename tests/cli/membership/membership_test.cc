// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/membership.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/membership/membership_table.h"

namespace hvd::cli {
namespace {

using Ranks = std::vector<uint32_t>;

TEST_CASE("the first epoch wants -np of those that may come, and waits a little for the rest") {
  MembershipTable table(2, {.min_np = 1, .max_np = 3}, 0);
  table.membership.Listed({{"a", 2}, {"b", 4}}, 0);
  CHECK(table.Wants() == "reach0 reach1");
  table.membership.HostReady(0, 0);
  CHECK(table.Wants() == "spawn0:1,2");
  CHECK(table.members.at(1).stdin);
  CHECK(!table.members.at(2).stdin);
  table.membership.HostReady(1, 0);
  CHECK(table.Wants() == "spawn1:3");
  CHECK(table.expected.hosts_size() == 2);
  table.Stand({3}, 0);
  CHECK(table.Wants().empty());
  table.now = 5;
  table.Stand({1}, 0);
  CHECK(table.Wants().empty());
  SECTION("the rest comes meanwhile") {
    table.Stand({2}, 0);
    CHECK(table.Wants() == "propose1:1,2|3");
    CHECK(table.proposal.root() == 0);
    CHECK(table.Needy() == Ranks{1, 2});
    CHECK(table.proposal.resume_commit() == 0);
    CHECK(!table.proposal.rolls_back());
    CHECK(table.proposal.hosts(0).void_state());
  }
  SECTION("it does not") {
    CHECK(table.membership.deadline() == Approx(6));
    table.membership.Tick(6);
    CHECK(table.Wants() == "propose1:1|3");
    table.membership.Started(1, 6);
    CHECK(table.Said() == "epoch 1: 2 ranks on 2 hosts");
  }
}

TEST_CASE("a death with survivors enough: they go on at once, the replacement joins later") {
  MembershipTable table(4, {.min_np = 2});
  table.Start(2);
  table.now = 10;
  table.membership.Died(
      2, {.signal = SIGKILL, .epoch = 1, .kept = MembershipTable::Kept(7), .what = "rank 1 died"},
      table.now);
  CHECK(table.Wants() == "abort1 spawn0:5");
  // Its slot may still have output; its share is the replacement's.
  CHECK(table.members.at(5).slot == 2);
  CHECK(table.members.at(5).share == 1);
  table.Stand({1, 3, 4}, 1);
  table.Quiet({0}, 1, 7);
  CHECK(table.Wants().empty());
  table.Quiet({1}, 1, 6);
  CHECK(table.Wants() == "propose2:1|3,4");
  CHECK(table.proposal.resume_commit() == 6);
  CHECK(table.proposal.rolls_back());
  CHECK(table.proposal.root() == 0);
  CHECK(table.Needy().empty());
  CHECK(table.proposal.survivors() == 3);
  CHECK(!table.proposal.hosts(0).void_state());
  table.membership.Started(2, 10.25);
  CHECK(table.Said() ==
        "rank 1 died; epoch 2: 3 ranks on 2 hosts; resumed at commit 6 after 0.2 s");
  SECTION("it stands: a planned change, without a rollback") {
    table.Stand({5}, 0);
    CHECK(table.Wants() == "announce2");
    CHECK(table.last.text == "1 rank joined");
    table.Stand({1, 3, 4}, 2);
    CHECK(table.Wants().empty());
    table.Quiet({0, 1}, 2, 9);
    CHECK(table.Wants() == "propose3:1,5|3,4");
    CHECK(!table.proposal.rolls_back());
    CHECK(table.proposal.resume_commit() == 9);
    CHECK(table.Needy() == Ranks{1});
    CHECK(table.proposal.root() == 0);
    table.membership.Started(3, 11);
    CHECK(table.Said() == "1 rank joined; epoch 3: 4 ranks on 2 hosts; no step lost");
  }
  SECTION("it stands while the epoch is aborted for another death: no announcement") {
    table.membership.Died(
        4, {.signal = SIGKILL, .epoch = 2, .kept = MembershipTable::Kept(8), .what = "again"}, 12);
    CHECK(table.Wants() == "abort2 spawn1:6");
    table.Stand({5, 1, 3}, 2);
    table.Quiet({0, 1}, 2, 8);
    CHECK(table.Wants() == "propose3:1,5|3");
    // The replacement reads its host's files.
    CHECK(table.Needy().empty());
    CHECK(table.proposal.rolls_back());
  }
}

TEST_CASE("--min-np is all that there are: the replacement is waited for") {
  MembershipTable table(2, {.min_np = 2});
  table.Start(1);
  table.Die(1, {.signal = SIGSEGV, .epoch = 1, .what = "rank 0 died"});
  CHECK(table.Wants() == "abort1 spawn0:3");
  table.Stand({2}, 1);
  table.Quiet({0}, 1, 3);
  CHECK(table.Wants().empty());
  table.Stand({3}, 0);
  CHECK(table.Wants() == "propose2:2,3");
  CHECK(table.proposal.root() == 0);
  CHECK(table.Needy().empty());
}

TEST_CASE("a second death before the start ends that epoch, and its number is not used again") {
  MembershipTable table(4, {.min_np = 1});
  table.Start(2);
  table.Die(4);
  table.Stand({1, 2, 3}, 1);
  table.Quiet({0, 1}, 1, 5);
  table.Wants();
  REQUIRE(table.proposal.epoch() == 2);
  table.Die(3, {.signal = SIGKILL, .what = "rank 2 died"});
  CHECK(table.Wants() == "abort2 spawn1:6");
  // Nothing was written there: who stands again has left it.
  table.Stand({1, 2}, 2);
  CHECK(table.Wants() == "propose3:1,2");
  CHECK(table.proposal.resume_commit() == 5);
  CHECK(table.proposal.rolls_back());
  table.membership.Started(2, 3);  // a late word
  CHECK(table.membership.history().size() == 1);
  table.membership.Started(3, 3);
  CHECK(table.Said() ==
        "a rank died, rank 2 died, h1 left; epoch 3: 2 ranks on 1 host; resumed at commit 5 after "
        "2.0 s");
}

TEST_CASE("a lost host is left alone, and comes back as another with a void state") {
  MembershipTable table(4, {.min_np = 1, .cooldown_least_s = 10, .cooldown_most_s = 30});
  table.Start(2);
  table.membership.HostGone(1, "its link closed", 100);
  CHECK(table.Wants() == "abort1");
  table.Stand({1, 2}, 1);
  table.Quiet({0}, 1, 41);
  CHECK(table.Wants() == "propose2:1,2");
  table.membership.Started(2, 100.3);
  CHECK(table.Said() == "h1 lost; epoch 2: 2 ranks on 1 host; resumed at commit 41 after 0.3 s");
  CHECK(table.membership.deadline() == Approx(110));
  table.membership.Tick(109);
  CHECK(table.Wants().empty());
  table.membership.Tick(110);
  CHECK(table.Wants() == "reach2");
  CHECK(table.last.text == "h1");
  table.membership.HostReady(2, 111);
  CHECK(table.Wants() == "spawn2:5,6");
  table.now = 112;
  table.Stand({5}, 0);
  CHECK(table.Wants().empty());  // the other is on its way
  table.Stand({6}, 0);
  CHECK(table.Wants() == "announce2");
  CHECK(table.last.text == "h1 joined");
  SECTION("the change") {
    table.Stand({1, 2}, 2);
    table.Quiet({0}, 2, 50);
    CHECK(table.Wants() == "propose3:1,2|5,6");
    CHECK(table.proposal.hosts(1).void_state());
    CHECK(!table.proposal.hosts(0).void_state());
    CHECK(table.Needy() == Ranks{2, 3});
  }
  SECTION("lost again: for twice as long, and never longer than the bound") {
    table.membership.HostGone(2, "again", 120);
    table.Wants();
    CHECK(table.membership.deadline() == Approx(140));
    table.membership.Tick(140);
    CHECK(table.Wants() == "reach3");
    table.membership.HostGone(3, "again", 141);
    CHECK(table.membership.deadline() == Approx(171));
  }
}

TEST_CASE("hosts that come and go cost no step") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  table.membership.Listed({{"h0", 2}, {"h1", 2}}, 2);
  CHECK(table.Wants() == "reach1");
  table.membership.HostReady(1, 2);
  CHECK(table.Wants() == "spawn1:3,4");
  table.Stand({3, 4}, 0);
  CHECK(table.Wants() == "announce1");
  table.Stand({1, 2}, 1);
  table.Quiet({0}, 1, 0);
  CHECK(table.Wants() == "propose2:1,2|3,4");
  CHECK(!table.proposal.rolls_back());
  CHECK(table.proposal.root() == 0);
  CHECK(table.Needy() == Ranks{2, 3});
  table.membership.Started(2, 3);
  table.Wants();
  // The older host goes, and of the other one share.
  table.membership.Listed({{"h1", 1}}, 4);
  CHECK(table.Wants() == "announce2");
  table.Stand({1, 2, 3, 4}, 2);
  CHECK(table.Wants().empty());
  table.Quiet({0, 1}, 2, 6);
  CHECK(table.Wants() == "remove1 remove2 remove4 propose3:3");
  CHECK(!table.proposal.rolls_back());
  CHECK(table.proposal.root() == 0);
  CHECK(table.Needy().empty());
  table.membership.Started(3, 5);
  CHECK(table.Said() == "h0 left; epoch 3: 1 rank on 1 host; no step lost");
  // They end by themselves, and that ends no job.
  for (const uint64_t member : {1, 2, 4}) table.Die(member, {.what = "left"});
  CHECK(!table.membership.closed());
  CHECK(table.Wants() == "stop0");
  table.membership.HostGone(0, "stopped", 6);
  CHECK(table.Wants().empty());
  // It is no fault of the host's: it may come back at once.
  table.membership.Listed({{"h1", 1}, {"h0", 1}}, 7);
  CHECK(table.Wants() == "reach2");
}

TEST_CASE("with --membership-change now the epoch ends at once") {
  MembershipTable table(2, {.min_np = 1, .change = MembershipChange::kNow});
  table.Start(1);
  table.membership.Listed({{"h0", 1}}, 2);
  CHECK(table.Wants() == "abort1");
  table.Stand({1, 2}, 1);
  table.Quiet({0}, 1, 4);
  CHECK(table.Wants() == "remove2 propose2:1");
  CHECK(table.proposal.rolls_back());
  CHECK(table.proposal.resume_commit() == 4);
}

TEST_CASE("a host that is wanted back is drained, and left alone then") {
  MembershipTable table(4, {.min_np = 1});
  table.Start(2);
  table.membership.DrainAsked(1, "SIGTERM", 50);
  CHECK(table.Wants() == "announce1");
  CHECK(table.last.text == "h1 left");
  table.Stand({1, 2, 3, 4}, 1);
  table.Quiet({0, 1}, 1, 8);
  CHECK(table.Wants() == "remove3 remove4 propose2:1,2");
  table.membership.Started(2, 51);
  for (const uint64_t member : {3, 4}) table.Die(member, {});
  CHECK(table.Wants() == "stop1");
  table.membership.HostGone(1, "stopped", 52);
  CHECK(table.Wants().empty());
  table.membership.Tick(60);
  CHECK(table.Wants() == "reach2");
}

TEST_CASE("a host that is lost long after it was wanted back is left alone once more") {
  MembershipTable table(4, {.min_np = 1, .cooldown_least_s = 10});
  table.Start(2);
  table.membership.DrainAsked(1, "SIGTERM", 50);
  table.Wants();
  table.membership.HostGone(1, "gone", 70);
  table.Stand({1, 2}, 1);
  table.Quiet({0}, 1, 8);
  CHECK(table.Wants().find("reach") == std::string::npos);
  table.membership.Tick(89);
  CHECK(table.Wants().find("reach") == std::string::npos);
  table.membership.Tick(91);
  CHECK(table.Wants() == "reach2");
}

TEST_CASE("a share is free when the process of a rank without a link has ended") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  table.membership.Died(2, {.code = 1, .epoch = 1, .lives = true, .what = "it broke its link"}, 2);
  CHECK(table.Wants() == "abort1");
  SECTION("the others do not wait for that") {
    table.Stand({1}, 1);
    table.Quiet({0}, 1, 7);
    CHECK(table.Wants() == "propose2:1");
    table.membership.Freed(2, 3);
    CHECK(table.Wants() == "spawn0:3");
    CHECK(table.members.at(3).share == 1);
  }
  SECTION("those without the state do, where its host has it") {
    table.Die(1);
    table.membership.Listed({{"h0", 2}, {"h1", 1}}, 3);
    table.membership.HostReady(1, 3);
    table.Wants();
    table.Quiet({0}, 1, 7);
    table.membership.Listed({{"h1", 1}, {"h0", 2}}, 3);
    table.Stand({4}, 0);
    CHECK(table.Wants().empty());
  }
}

TEST_CASE("deaths count from the newest commit that any end has told of") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  const MemberEnd breaks = {.code = 1, .epoch = 1, .lives = true, .what = "it broke its link"};
  table.membership.Died(1, breaks, 2);
  table.membership.Died(1, {.signal = SIGTERM, .epoch = 1, .kept = MembershipTable::Kept(7)}, 2);
  table.membership.Died(2, breaks, 2);
  table.Quiet({0}, 1, 7);
  table.membership.Freed(2, 2);
  CHECK(table.Wants() == "abort1 spawn0:3");
  table.membership.Died(3, {.code = 125, .what = "it did not start"}, 3);
  CHECK(table.Wants().empty());
  table.membership.Tick(4);
  CHECK(table.Wants() == "spawn0:4");
  table.membership.Died(4, {.code = 125, .what = "it did not start"}, 4);
  table.membership.Tick(100);
  CHECK(table.Wants().find("spawn") == std::string::npos);
}

TEST_CASE("when all ranks of the epoch have ended well, whoever is on the way is not needed") {
  MembershipTable table(4, {.min_np = 1});
  table.Start(2);
  table.Die(2, {.signal = SIGKILL, .what = "rank 1 died"});
  CHECK(table.Wants() == "abort1 spawn0:5");
  table.Stand({1, 3, 4}, 1);
  table.Quiet({0, 1}, 1, 3);
  CHECK(table.Wants() == "propose2:1|3,4");
  table.membership.Started(2, 2);
  for (const uint64_t member : {1, 3}) table.EndWell(member);
  table.Stand({5}, 0);  // nothing is announced any more
  CHECK(table.Wants().empty());
  CHECK(!table.membership.closed());
  table.EndWell(4);
  CHECK(table.membership.closed());
  CHECK(table.Wants() == "remove5");
  table.Die(5, {.code = 1, .what = "whatever it makes of that"});
  table.membership.Tick(1000);
  CHECK(table.Wants().empty());
}

}  // namespace
}  // namespace hvd::cli
