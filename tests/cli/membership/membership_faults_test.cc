// SPDX-License-Identifier: Apache-2.0
// Faults that would end one epoch after another: what is left out for them, and what a person is
// told.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/membership/membership_table.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

bool SaidAnywhere(MembershipTable& table, const std::string& words) {
  table.Wants();
  for (const std::string& line : table.said) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

// ---- links ----

// Hosts with two shares each; the newest epoch ends since nothing passes between two of them.
struct CutTable : MembershipTable {
  explicit CutTable(const ElasticOptions& options = {.min_np = 2}) : MembershipTable(4, options) {}

  // All members that live have to have a place in the epoch.
  void Cut(int one, int other, uint64_t commit = 0) {
    const v1::EpochPropose ends = proposal;
    membership.Unreached(one, other, ends.epoch(), "cannot connect");
    membership.Broke(one, ends.epoch(), "cannot connect", now);
    EndFor(ends, commit);
  }
  void EndFor(const v1::EpochPropose& ends, uint64_t commit) {
    for (const v1::EpochHost& host : ends.hosts()) {
      for (const v1::Seat& seat : host.members()) Stand({seat.member()}, ends.epoch());
    }
    for (const v1::EpochHost& host : ends.hosts()) {
      Quiet({static_cast<int>(host.host())}, ends.epoch(), commit);
    }
    wants = Wants();
    if (proposal.epoch() > ends.epoch()) membership.Started(proposal.epoch(), now);
  }
  std::string wants;
};

TEST_CASE("hosts between which nothing passes: three epochs, and the younger is left out") {
  CutTable table;
  table.Start(2);
  table.Cut(1, 0);
  CHECK(table.wants == "abort1 propose2:1,2|3,4");
  table.Cut(0, 1);
  CHECK(table.wants == "abort2 propose3:1,2|3,4");
  CHECK(!SaidAnywhere(table, "left out"));
  table.Cut(1, 0);
  CHECK(table.wants == "abort3 remove3 remove4 propose4:1,2");
  CHECK(SaidAnywhere(table,
                     "host h1 is left out: no data passes between h0 and h1: cannot connect,"
                     " for which 3 epochs in a row have ended; is a route, a firewall"));
  SECTION("it is not reached again while the list has it, but behind one that has not") {
    table.Die(3, {.code = 0});
    table.Die(4, {.code = 0});
    CHECK(table.Wants() == "stop1");
    table.membership.HostGone(1, "stopped", table.now);
    table.membership.Tick(10000);
    CHECK(table.Wants().empty());
    table.membership.Listed({{"h0", 2}}, 10001);
    table.membership.Listed({{"h0", 2}, {"h1", 2}}, 10002);
    CHECK(table.Wants() == "reach2");
  }
}

TEST_CASE("without the host that is left out there are too few: the job ends, and names the link") {
  CutTable table({.min_np = 4});
  table.Start(2);
  table.Cut(1, 0);
  table.Cut(1, 0);
  table.Cut(1, 0);
  CHECK_THAT(table.wants, Contains("end"));
  CHECK(table.last.end == MembershipEnd::kTooFew);
  CHECK_THAT(table.end_text, Contains("2 of at least 4 ranks are there, and no more can come"));
  CHECK_THAT(table.end_text, Contains("host h1: no data passes between h0 and h1: cannot connect"));
}

TEST_CASE("… where the list may grow, it waits for as long as --elastic-timeout") {
  CutTable table({.min_np = 4, .discovery_script = "./hosts", .elastic_timeout_s = 60});
  table.Start(2);
  for (int time = 0; time < 3; ++time) table.Cut(1, 0);
  CHECK(table.wants == "abort3 remove3 remove4");
  table.membership.Tick(table.now + 59);
  CHECK(table.Wants().empty());
  table.membership.Tick(table.now + 61);
  CHECK(table.Wants() == "end");
}

TEST_CASE(
    "a link counts as good again when an epoch over it has got on, and a death explains all") {
  CutTable table;
  table.Start(2);
  table.Cut(1, 0);
  table.Cut(1, 0);
  SECTION("an epoch that got on, and ends for the link later") {
    table.Cut(1, 0, 5);
    CHECK(table.wants == "abort3 propose4:1,2|3,4");
    table.Cut(1, 0, 5);
    CHECK(table.wants == "abort4 propose5:1,2|3,4");
    table.Cut(1, 0, 5);
    CHECK_THAT(table.wants, Contains("remove3 remove4"));
  }
  SECTION("an epoch in which a rank has died") {
    table.membership.Unreached(1, 0, 3, "cannot connect");
    table.Die(4, {.signal = SIGKILL, .epoch = 3, .what = "rank 3 died"});
    table.Stand({1, 2, 3}, 3);
    table.Quiet({0, 1}, 3, 0);
    CHECK(table.Wants() == "abort3 spawn1:5 propose4:1,2|3");
  }
  SECTION("what is said of an older epoch") {
    table.membership.Unreached(1, 0, 2, "cannot connect");
    table.membership.Broke(0, 3, "something else", table.now);
    table.EndFor(table.proposal, 0);
    CHECK(table.wants == "abort3 propose4:1,2|3,4");
  }
}

TEST_CASE("of two hosts that are cut off that is left out which lacks the state, or more links") {
  CutTable table({.min_np = 1});
  table.Start(3);
  SECTION("the older is cut off from both others") {
    for (int time = 0; time < 3; ++time) {
      table.membership.Unreached(2, 0, table.proposal.epoch(), "cannot connect");
      table.Cut(1, 0);
    }
    CHECK(table.wants == "abort3 remove1 remove2 propose4:3,4|5,6");
    CHECK(SaidAnywhere(table, "host h0 is left out"));
  }
  SECTION("the older has no state") {
    for (const uint64_t epoch : {1, 2, 3}) {
      table.membership.Unreached(1, 0, epoch, "cannot connect");
      table.membership.Broke(1, epoch, "cannot connect", table.now);
      table.Stand({1, 2, 3, 4, 5, 6}, epoch);
      table.Quiet({0}, epoch, 0);
      table.Quiet({1, 2}, epoch, epoch == 1 ? 7 : table.proposal.resume_commit());
      table.Wants();
      table.membership.Started(epoch + 1, table.now);
    }
    CHECK(SaidAnywhere(table, "host h0 is left out"));
  }
}

// ---- starts that come to nothing ----

MemberEnd Raised(uint64_t epoch, const std::string& what, uint64_t commit = 0) {
  MemberEnd end;
  end.code = 1;
  end.epoch = epoch;
  end.left = true;
  end.kept = MembershipTable::Kept(commit);
  end.what = what;
  return end;
}

// h0 with members 1 and 2, which have committed; h1 has come with member 3.
struct JoinTable : MembershipTable {
  explicit JoinTable(const ElasticOptions& options = {.min_np = 1, .cooldown_least_s = 10})
      : MembershipTable(2, options) {
    Start(1);
    membership.Listed({{"h0", 2}, {"h1", 1}}, now);
    REQUIRE(Wants() == "reach1");
    Join(1, 3);
  }
  // The epoch with the new member begins; those before have all committed.
  void Join(int host, uint64_t member) {
    membership.HostReady(host, now);
    Wants();
    const uint64_t before = proposal.epoch();
    Stand({member}, 0);
    REQUIRE(Wants() == "announce" + std::to_string(before));
    Stand({1, 2}, before);
    Quiet({0}, before, 10 * before);
    Wants();
    REQUIRE(proposal.epoch() == before + 1);
    membership.Started(before + 1, now);
    Wants();
  }
  // It raises before it has the state, and leaves in good order; the others go on.
  void Raises(uint64_t member, int host) {
    const uint64_t epoch = proposal.epoch();
    membership.Broke(0, epoch, "rank 2 has left the job", now);
    Stand({1, 2}, epoch);
    Quiet({0, host}, epoch, 10 * (epoch - 1));
    membership.Died(member, Raised(epoch, "rank 2 on h1 exited with code 1"), now);
    membership.Freed(member, now);
    wants = Wants();
    membership.Started(proposal.epoch(), now);
    Wants();
  }
  std::string wants;
};

TEST_CASE("a new host whose rank fails before it has the state is left alone, at last left out") {
  JoinTable table;
  table.Raises(3, 1);
  CHECK(table.wants == "abort2 propose3:1,2 stop1");
  CHECK(table.said.back() ==
        "rank 2 on h1 exited with code 1, h1 left; epoch 3: 2 ranks on 1 host; resumed at commit "
        "10 after 0 ms");
  CHECK(SaidAnywhere(table,
                     "host h1: rank 2 on h1 exited with code 1 before it had a part in any "
                     "commit (time 1 of 3); it is left alone for 10 s"));
  table.membership.HostGone(1, "stopped", table.now);
  CHECK(table.Wants().empty());
  table.now = 12;
  table.membership.Tick(table.now);
  CHECK(table.Wants() == "reach2");
  table.Join(2, 4);
  SECTION("again, though the others have committed meanwhile: for twice as long") {
    table.Raises(4, 2);
    CHECK(SaidAnywhere(table, "(time 2 of 3); it is left alone for 20 s"));
    table.membership.HostGone(2, "stopped", table.now);
    table.now = 40;
    table.membership.Tick(table.now);
    CHECK(table.Wants() == "reach3");
    table.Join(3, 5);
    table.Raises(5, 3);
    CHECK(SaidAnywhere(table, "host h1 is left out: rank 2 on h1 exited with code 1"));
    table.membership.HostGone(3, "stopped", table.now);
    table.membership.Tick(100000);
    CHECK(table.Wants().empty());
    table.membership.Listed({{"h0", 2}}, 100001);
    table.membership.Listed({{"h0", 2}, {"h1", 1}}, 100002);
    CHECK(table.Wants() == "reach4");
  }
  SECTION("this time it gets on, and fails later") {
    const uint64_t epoch = table.proposal.epoch();
    table.membership.Died(
        4,
        {.code = 1, .epoch = epoch, .kept = MembershipTable::Kept(1000), .what = "rank 2 failed"},
        table.now);
    CHECK(table.Wants() == "abort" + std::to_string(epoch) + " spawn2:5");
  }
}

TEST_CASE("a host that fails before there is any commit goes, and comes back") {
  MembershipTable table(4, {.min_np = 4});
  table.Start(2);
  uint64_t failing = 2;
  for (uint64_t epoch = 1;; ++epoch) {
    table.Die(failing, Raised(epoch, "rank 1 on h0 exited with code 1"));
    table.membership.Broke(1, epoch, "rank 1 has left", table.now);
    table.Stand({1, 3, 4}, epoch);
    table.Quiet({0, 1}, epoch, 0);
    table.now += 2;
    table.membership.Tick(table.now);
    const std::string wants = table.Wants();
    if (epoch == 3) {
      CHECK_THAT(wants, Contains("abort3 remove1"));
      break;
    }
    failing = epoch + 4;
    CHECK_THAT(wants, Contains("spawn0:" + std::to_string(failing)));
    table.Stand({failing}, 0);
    CHECK_THAT(table.Wants(), Contains("propose" + std::to_string(epoch + 1) + ":"));
    table.membership.Started(epoch + 1, table.now);
  }
  CHECK(SaidAnywhere(table, "(time 1 of 3); it is left alone for 10 s"));
  table.EndWell(1);
  CHECK(table.Wants() == "stop0");
  table.membership.HostGone(0, "stopped", table.now);
  table.membership.Tick(table.now + 11);
  CHECK(table.Wants() == "reach2");
}

TEST_CASE("a rank that fails each time at its end is the program's fault, though nothing breaks") {
  MembershipTable table(2, {.min_np = 2});
  table.Start(2, 1);
  std::vector<uint64_t> ranks = {1, 2};
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    // Both have left by themselves.
    MemberEnd failed = Raised(epoch, "rank 1 on h1 exited with code 3", 5);
    failed.left = true;
    table.EndWell(ranks[0]);
    table.Die(ranks[1], failed);
    table.Quiet({0, 1}, epoch, 5);
    table.now += 2;
    table.membership.Tick(table.now);
    const std::string wants = table.Wants();
    if (epoch == 3) break;
    CHECK_THAT(wants, Contains("spawn0:") && Contains("spawn1:"));
    const uint64_t last = table.members.rbegin()->first;
    ranks = {last - 1, last};
    if (table.members[last].host == 0) std::swap(ranks[0], ranks[1]);
    for (const uint64_t rank : ranks) table.Stand({rank}, 0);
    CHECK_THAT(table.Wants(), Contains("propose"));
    table.membership.Started(epoch + 1, table.now);
  }
  CHECK_THAT(table.end_text, Contains("the program fails by itself: rank 1 on h1 exited"));
}

TEST_CASE("a new host's rank that fails since others broke its epoch is no failure of the host's") {
  JoinTable table;
  table.membership.Died(1, {.signal = SIGSEGV, .epoch = 2, .what = "rank 0 died"}, table.now);
  MemberEnd victim = Raised(2, "rank 2 on h1 exited with code 1");
  victim.own = false;
  table.membership.Died(3, victim, table.now);
  CHECK_THAT(table.Wants(), Contains("spawn1:"));
  CHECK(!SaidAnywhere(table, "had a part in any commit"));
}

TEST_CASE("a new host's rank that is killed from outside is replaced there") {
  JoinTable table;
  table.membership.Died(3, {.signal = SIGKILL, .epoch = 2, .what = "rank 2 was killed"}, table.now);
  CHECK(table.Wants() == "abort2 spawn1:4");
}

TEST_CASE("a share whose replacements fail before any commit is left out, its host is not") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  table.Die(2, {.signal = SIGKILL, .epoch = 1, .kept = MembershipTable::Kept(5), .what = "killed"});
  uint64_t epoch = 1, commit = 5;
  for (uint64_t replacement = 3; replacement < 6; ++replacement) {
    CHECK_THAT(table.Wants(), Contains("spawn0:" + std::to_string(replacement)));
    table.Stand({1}, epoch);
    table.Quiet({0}, epoch, commit);
    table.membership.Started(++epoch, table.now);
    // The other gets on alone, and then with the replacement, which has no part in it.
    table.Stand({replacement}, 0);
    table.Stand({1}, epoch);
    table.Quiet({0}, epoch, commit += 10);
    table.Wants();
    REQUIRE(table.proposal.epoch() == epoch + 1);
    table.membership.Started(++epoch, table.now);
    table.now += 100;
    table.Die(replacement, Raised(epoch, "rank 1 exited with code 1", commit));
    table.membership.Broke(0, epoch, "rank 1 has left", table.now);
  }
  CHECK_THAT(table.Wants(), !Contains("spawn"));
  CHECK(SaidAnywhere(table,
                     "host h0: share 1 is left out: rank 1 exited with code 1 before it had "
                     "a part in any commit (time 3 of 3)"));
}

// ---- ranks that are waited for ----

TEST_CASE("a survivor that does not come back is named after 5 s") {
  MembershipTable table(3, {.min_np = 1, .elastic_timeout_s = 60});
  table.Start(1, 3);
  table.Die(1);
  table.Stand({2}, 1);
  table.Wants();
  CHECK(table.membership.deadline() == Approx(table.now + 5));
  table.membership.Tick(table.now + 4);
  CHECK(table.Said().empty() == false);
  CHECK(!SaidAnywhere(table, "has not come back"));
  table.membership.Tick(table.now + 5);
  CHECK(table.Said() ==
        "rank 2 on h0 has not come back in the 5 s since its epoch ended; the "
        "others wait, up to --elastic-timeout 60 s");
  CHECK(table.membership.deadline() == Approx(table.now + 60));
  table.said.clear();
  table.membership.Tick(table.now + 20);
  CHECK(table.Said().empty());
}

TEST_CASE("a host whose ranks do not begin an epoch is named after 5 s") {
  MembershipTable table(4, {.min_np = 1, .elastic_timeout_s = 60});
  table.membership.Listed({{"a", 2}, {"b", 2}}, 0);
  for (const int host : {0, 1}) table.membership.HostReady(host, 0);
  table.Wants();
  table.Stand({1, 2, 3, 4}, 0);
  CHECK(table.Wants() == "propose1:1,2|3,4");
  table.membership.Ready(0, 1);
  table.membership.Tick(table.now + 5);
  CHECK(table.Said() ==
        "host b has not begun epoch 1 in 5 s; the others wait, up to "
        "--elastic-timeout 60 s");
}

TEST_CASE("a rank that is stopped while others wait is ended and replaced") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  table.membership.Stalled(2, "rank 1 on h0 is held", table.now);
  CHECK(table.Wants() == "abort1 retire2");
  table.Stand({1}, 1);
  CHECK(table.Wants().empty());
  table.membership.Died(2, {.signal = SIGTERM, .what = "killed"}, table.now);
  table.membership.Freed(2, table.now);
  table.Quiet({0}, 1, 4);
  CHECK(table.Wants() == "spawn0:3 propose2:1");
  table.membership.Started(2, table.now);
  CHECK_THAT(table.Said(), Contains("rank 1 on h0 is held; epoch 2: 1 rank on 1 host; resumed"));
}

// ---- members that stay though their host is to go ----

TEST_CASE("the ranks of the only host stay though it is to go, and a person is told why") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  const char* const why =
      "but its ranks go on: no other host has the state of the job; they leave as soon as one has "
      "it";
  SECTION("it is wanted back") {
    table.membership.DrainAsked(0, "hvdd got TERM", table.now);
    CHECK(table.Wants().empty());
    CHECK(table.said[table.said.size() - 2] ==
          "host h0 is wanted back (hvdd got TERM): it is left alone for 10 s");
    CHECK(table.said.back() == std::string("host h0 is to go, ") + why);
  }
  SECTION("the list is empty") {
    table.membership.Listed({}, table.now);
    CHECK(table.Wants().empty());
    CHECK(table.said.back() == std::string("host h0 is not in the list of hosts any more, ") + why);
    table.said.clear();
    table.membership.Listed({}, table.now);
    table.membership.Tick(table.now + 1);
    CHECK(table.Said().empty());
    table.membership.Listed({{"h0", 2}}, table.now);
    table.membership.Listed({}, table.now);
    CHECK(!table.Said().empty());
  }
  SECTION("where another host has it they leave") {
    table.membership.Listed({{"h0", 2}, {"h1", 2}}, table.now);
    table.membership.HostReady(1, table.now);
    CHECK(table.Wants() == "reach1 spawn1:3,4");
    table.Stand({3, 4}, 0);
    table.Stand({1, 2}, 1);
    table.Quiet({0}, 1, 3);
    table.Wants();
    table.membership.Started(2, table.now);
    table.Wants();
    table.said.clear();
    table.membership.DrainAsked(0, "hvdd got TERM", table.now);
    CHECK(table.Wants() == "announce2");
    CHECK(table.said == std::vector<std::string>{
                            "host h0 is wanted back (hvdd got TERM): its ranks leave, and it is "
                            "left alone for 10 s"});
  }
}

}  // namespace
}  // namespace hvd::cli
