// SPDX-License-Identifier: Apache-2.0
// Where the state is: which hosts have it, who waits for it, who stays with it, when it is lost.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/membership/membership_table.h"

namespace hvd::cli {
namespace {

using Ranks = std::vector<uint32_t>;

TEST_CASE("a host that is two commits behind has no state") {
  MembershipTable table(6, {.min_np = 1});
  table.Start(3);
  table.Die(2);
  table.Stand({1, 3, 4, 5, 6}, 1);
  table.Quiet({0}, 1, 3);
  table.Quiet({1}, 1, 8);
  table.Quiet({2}, 1, 9);
  CHECK(table.Wants() == "abort1 spawn0:7 propose2:3,4|1|5,6");
  CHECK(table.proposal.resume_commit() == 8);
  CHECK(table.proposal.hosts(1).void_state());
  CHECK(!table.proposal.hosts(2).void_state());
  CHECK(table.Needy() == Ranks{2});
  CHECK(table.proposal.root() == 0);
}

TEST_CASE("no rank survives, but a host has the state") {
  MembershipTable table(2, {.min_np = 2});
  table.Start(1);
  for (const uint64_t member : {1, 2}) table.Die(member);
  CHECK(table.Wants() == "abort1 spawn0:3 spawn0:4");
  table.Quiet({0}, 1, 12);
  table.Stand({3, 4}, 0);
  CHECK(table.Wants() == "propose2:3,4");
  CHECK(table.proposal.resume_commit() == 12);
  CHECK(table.proposal.root() == 0);
  CHECK(table.proposal.rolls_back());
  CHECK(table.Needy().empty());
  CHECK(table.proposal.survivors() == 0);
}

TEST_CASE(
    "nobody knows what was committed when every host of the epoch is lost, and the job ends") {
  MembershipTable table(2, {.min_np = 1, .cooldown_least_s = 10});
  table.Start(1);
  table.membership.HostGone(0, "gone", 5);
  CHECK(table.Wants() == "abort1 end");
  CHECK(table.end_text.find("every host of the last epoch is lost") != std::string::npos);
}

TEST_CASE("a job in which nothing was committed begins anew") {
  MembershipTable table(2, {.min_np = 2});
  table.Start(1);
  for (const uint64_t member : {1, 2}) table.Die(member);
  CHECK(table.Wants() == "abort1 spawn0:3 spawn0:4");
  table.Quiet({0}, 1, 0);
  table.Stand({3, 4}, 0);
  CHECK(table.Wants() == "propose2:3,4");
  CHECK(table.proposal.resume_commit() == 0);
  CHECK(table.proposal.root() == 0);
  CHECK(!table.proposal.rolls_back());
}

TEST_CASE("what was committed is lost with every host that had it, and the job ends") {
  MembershipTable table(2, {.min_np = 1, .cooldown_least_s = 10});
  table.Start(1);
  table.Die(2);
  table.Stand({1}, 1);
  table.Quiet({0}, 1, 7);
  table.Wants();
  table.membership.HostGone(0, "gone", 5);
  CHECK(table.Wants() == "abort2 end");
  CHECK(table.end_text.find("(commit 7) is lost or left out") != std::string::npos);
}

TEST_CASE("a host that has only the commit beyond is one without the state") {
  MembershipTable table(6, {.min_np = 1});
  table.Start(3);
  table.Die(2);
  table.Stand({1, 3, 4, 5, 6}, 1);
  table.membership.Quiet(0, 1, {12, 11}, table.now);
  table.membership.Quiet(1, 1, {13, 12}, table.now);
  table.membership.Quiet(2, 1, {13, 0}, table.now);
  table.Wants();
  REQUIRE(table.proposal.epoch() == 2);
  CHECK(table.proposal.resume_commit() == 12);
  for (const v1::EpochHost& host : table.proposal.hosts()) {
    CHECK(host.void_state() == (host.host() == 2));  // the last that was quiet
  }
}

TEST_CASE("a rank that lacks the state waits for one on a host that has it") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(2, 1);
  table.Die(1);
  table.Stand({2}, 1);
  table.Quiet({0}, 1, 7);
  table.membership.Quiet(1, 1, {0, 0}, table.now);
  CHECK(table.Wants() == "abort1 spawn0:3");
  table.Stand({3}, 0);
  CHECK(table.Wants() == "propose2:3|2");
  CHECK(table.proposal.resume_commit() == 7);
  CHECK(table.Needy() == Ranks{1});
}

TEST_CASE("a rank that lacks the state waits for the next on a host whose share has its time") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(2, 1);
  table.Die(1, {.code = 7, .own = true, .what = "a rank failed"});
  table.Die(2, {.code = 7, .own = false, .what = "another failed with it"});
  table.Quiet({0, 1}, 1, 3);
  CHECK(table.Wants() == "abort1 spawn0:3 spawn1:4");
  table.Stand({3}, 0);
  CHECK(table.Wants() == "propose2:3");
  table.membership.Started(2, table.now);
  table.Stand({4}, 0);
  table.Die(3, {.code = 7, .own = true, .epoch = 2, .what = "a rank failed again"});
  table.Quiet({0}, 2, 3);
  CHECK(table.Wants() == "announce2 abort2");  // the state is there, and nobody yet
  table.now += 0.5;
  table.membership.Tick(table.now);
  CHECK(table.Wants() == "spawn0:5");
  table.Stand({5}, 0);
  CHECK(table.Wants() == "propose3:5|4");
  CHECK(table.proposal.resume_commit() == 3);
}

TEST_CASE("those who alone have the state stay until others have it") {
  MembershipTable table(1, {.min_np = 1});
  table.Start(1);
  table.membership.DrainAsked(0, "it is wanted back", table.now);
  CHECK(table.Wants() == "");
}

TEST_CASE("those on their way to the state stay until others have it, though their host is to go") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(2, 1);
  table.membership.Quiet(0, 1, {0, 0}, table.now);
  table.membership.Quiet(1, 1, {7, 6}, table.now);  // said before the death of its last rank is
  table.Die(2);
  table.Wants();
  table.Stand({1}, 1);
  table.membership.DrainAsked(1, "it is wanted back", table.now);
  CHECK(table.Wants().empty());
  table.Stand({3}, 0);
  CHECK(table.Wants() == "propose2:3|1");
  CHECK(table.proposal.rolls_back());
  CHECK(table.proposal.resume_commit() == 7);
}

TEST_CASE("they stay, too, where the last survivor dies between two epochs") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(2, 1);
  table.membership.DrainAsked(1, "it is wanted back", table.now);
  CHECK(table.Wants() == "announce1");
  table.Quiet({0, 1}, 1, 7);
  table.Stand({2}, 1);
  table.membership.Died(1, {.signal = SIGKILL, .epoch = 1, .left = true, .what = "it died"}, 2);
  CHECK(table.Wants() == "remove2 spawn0:3");
  table.membership.DrainAsked(0, "so is this one", table.now);
  CHECK(table.end_text.empty());
}

TEST_CASE("a rank that has the state and does not come back is replaced before others go on") {
  MembershipTable table(2, {.min_np = 1, .elastic_timeout_s = 5});
  table.Start(2, 1);
  table.now = 10;
  table.Die(2, {.signal = SIGKILL, .epoch = 1, .what = "rank 1 died"});
  table.Wants();
  table.membership.Quiet(0, 1, {7, 6}, table.now);
  table.membership.Quiet(1, 1, {0, 0}, table.now);
  table.Stand({3}, 0);
  CHECK(table.Wants().empty());
  table.now = 15;
  table.membership.Tick(table.now);
  CHECK(table.Wants() == "retire1");
  CHECK(table.end_text.empty());
  table.Die(1, {.signal = SIGTERM, .epoch = 1, .what = "rank 0 was ended"});
  CHECK(table.Wants() == "spawn0:4");
  table.Stand({4}, 0);
  CHECK(table.Wants() == "propose2:4|3");
  CHECK(table.proposal.resume_commit() == 7);
}

}  // namespace
}  // namespace hvd::cli
