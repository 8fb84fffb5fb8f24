// SPDX-License-Identifier: Apache-2.0
// What ends an elastic job, or leaves a share or a host out of it.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/membership/membership_table.h"

namespace hvd::cli {
namespace {

TEST_CASE("too few ranks are waited for until --elastic-timeout") {
  MembershipTable table(4, {.min_np = 3, .elastic_timeout_s = 60, .cooldown_least_s = 1000});
  table.Start(2);
  table.now = 10;
  table.membership.HostGone(1, "its link closed", table.now);
  table.Stand({1, 2}, 1);
  table.Quiet({0}, 1, 3);
  CHECK(table.Wants() == "abort1");
  CHECK(table.membership.deadline() == Approx(table.now + 5));
  table.membership.Tick(table.now + 5);
  CHECK(table.Said() ==
        "2 of at least 3 ranks are there; more are waited for, up to --elastic-timeout 60 s");
  CHECK(table.membership.deadline() == Approx(table.now + 60));
  table.said.clear();
  table.membership.Tick(table.now + 59);
  CHECK(table.Said().empty());
  table.membership.Tick(table.now + 60);
  CHECK(table.Wants() == "end");
  CHECK(table.last.end == MembershipEnd::kTooFew);
  CHECK(table.end_text ==
        "2 of at least 3 ranks are there, after --elastic-timeout 60 s\n  the last failures:\n"
        "    host h1: its link closed");
  table.membership.Tick(2000);
  CHECK(table.Wants().empty());
}

TEST_CASE("of a host that fails all the time, the end tells the last times") {
  MembershipTable table(
      2, {.min_np = 2, .elastic_timeout_s = 60, .cooldown_least_s = 1, .cooldown_most_s = 1});
  table.membership.Listed({{"a", 2}}, 0);
  for (int time = 0; time < 20; ++time) {
    table.membership.HostGone(time, "no route, try " + std::to_string(time), 2 * time);
    table.membership.Tick(2 * time + 1);
  }
  table.membership.Tick(61);
  table.Wants();
  CHECK(table.end_text ==
        "0 of at least 2 ranks are there, after --elastic-timeout 60 s\n  the last failures:\n"
        "    host a: no route, try 15\n    host a: no route, try 16\n"
        "    host a: no route, try 17\n    host a: no route, try 18\n"
        "    host a: no route, try 19");
}

TEST_CASE("a job that never has -np ranks ends, too") {
  MembershipTable table(3, {.min_np = 1, .elastic_timeout_s = 60, .cooldown_least_s = 1000});
  table.membership.Listed({{"a", 2}, {"b", 1}}, 0);
  table.membership.HostReady(0, 0);
  table.membership.HostGone(1, "no route", 1);
  table.Wants();
  table.Stand({1, 2}, 0);
  table.membership.Tick(59);
  CHECK(table.Wants().empty());
  table.membership.Tick(61);
  CHECK(table.Wants() == "end");
  CHECK(table.end_text.find("2 of at least 3 ranks") != std::string::npos);
}

TEST_CASE("--reset-limit refuses one epoch more, and tells those before") {
  MembershipTable table(2, {.min_np = 1, .reset_limit = 1});
  table.Start(1);
  table.Die(1);
  table.Stand({2}, 1);
  table.Quiet({0}, 1, 3);
  CHECK(table.Wants() == "abort1 spawn0:3 propose2:2");
  table.membership.Started(2, 2);
  table.Die(2, {.signal = SIGKILL, .kept = {4, 3, 4}, .what = "rank 0 died"});
  table.Stand({3}, 0);
  table.Quiet({0}, 2, 4);
  CHECK(table.Wants() == "abort2 spawn0:4 end");
  CHECK(table.last.end == MembershipEnd::kResetLimit);
  CHECK(table.end_text.find("--reset-limit 1 allows") != std::string::npos);
  CHECK(table.end_text.find("a rank died; epoch 2: 1 rank on 1 host; resumed at commit 3 after "
                            "1.0 s") != std::string::npos);
}

MemberEnd Code(int code, uint64_t commit = 0, bool own = true) {
  MemberEnd end;
  end.code = code;
  end.kept = MembershipTable::Kept(commit);
  end.own = own;
  end.what = "a rank exited with code " + std::to_string(code);
  return end;
}

TEST_CASE("the same end on two hosts without a commit in between is the program's") {
  MembershipTable table(4, {.min_np = 1});
  table.Start(2);
  SECTION("it is") {
    table.Die(1, Code(7, 5));
    CHECK(table.Wants() == "abort1 spawn0:5");
    table.Die(3, Code(7, 5));
    CHECK(table.Wants() == "end");
    CHECK(table.last.end == MembershipEnd::kProgramBug);
    CHECK(table.last.member == 3);
  }
  SECTION("a commit in between") {
    table.Die(1, Code(7, 5));
    table.Die(3, Code(7, 6));
    CHECK(table.Wants().find("end") == std::string::npos);
  }
  SECTION("another end") {
    table.Die(1, Code(7, 5));
    table.Die(3, Code(8, 5));
    CHECK(table.Wants().find("end") == std::string::npos);
  }
  SECTION("the second is only what the abort made of it") {
    table.Die(1, Code(7, 5));
    table.Die(3, Code(7, 5, false));
    CHECK(table.Wants().find("end") == std::string::npos);
  }
  SECTION("nobody knows how they ended") {
    MemberEnd end = Code(1);
    end.known = false;
    table.Die(1, end);
    table.Die(3, end);
    CHECK(table.Wants().find("end") == std::string::npos);
  }
  SECTION("somebody kills them") {
    table.Die(1);
    table.Die(3);
    CHECK(table.Wants().find("end") == std::string::npos);
  }
  SECTION("they have too little memory everywhere") {
    table.Die(1, {.signal = SIGKILL, .out_of_memory = true});
    table.Die(3, {.signal = SIGKILL, .out_of_memory = true});
    CHECK(table.Wants().find("end") != std::string::npos);
  }
}

TEST_CASE("on one host it takes all shares at once") {
  MembershipTable table(3, {.min_np = 1});
  table.Start(1, 3);
  table.Die(1, Code(7));
  table.Die(2, Code(7));
  CHECK(table.Wants() == "abort1 spawn0:4 spawn0:5");
  SECTION("all") {
    table.Die(3, Code(7));
    CHECK(table.Wants() == "end");
    CHECK(table.last.end == MembershipEnd::kProgramBug);
  }
  SECTION("two of them, again and again, are left out") {
    for (int again = 0; again < 2; ++again) {
      table.Die(4 + 2 * again, Code(7));
      table.Die(5 + 2 * again, Code(7));
      table.now += 100;
      table.membership.Tick(table.now);
    }
    CHECK(table.Wants().find("end") == std::string::npos);
    table.Stand({3}, 1);
    table.Quiet({0}, 1, 0);
    CHECK(table.Wants() == "propose2:3");
  }
}

TEST_CASE("a replacement that cannot start is no reason to end what goes on without it") {
  MembershipTable table(3, {.min_np = 2});
  table.Start(1, 3);
  table.Die(3);
  table.Stand({1, 2}, 1);
  table.Quiet({0}, 1, 4);
  CHECK(table.Wants() == "abort1 spawn0:4 propose2:1,2");
  table.membership.Started(2, 1);
  table.Die(4, Code(1));
  table.Die(5, Code(1));
  table.now += 10;
  table.membership.Tick(table.now);
  table.Die(6, Code(1));
  table.now += 100;
  table.membership.Tick(table.now);
  CHECK(table.Wants() == "spawn0:5 spawn0:6");
  CHECK(table.Said().find("host h0: share 2 is left out: a rank exited with code 1") == 0);
  table.EndWell(1);
  table.EndWell(2);
  CHECK(table.membership.closed());
}

TEST_CASE("a program that no rank of which can begin ends at once, with its own end") {
  MembershipTable table(2, {.min_np = 1});
  table.membership.Listed({{"a", 2}}, 0);
  table.membership.HostReady(0, 0);
  table.Wants();
  table.Die(1, Code(1));
  CHECK(table.Wants() == "spawn0:3");
  table.Die(2, Code(1));
  CHECK(table.Wants() == "end");
  CHECK(table.last.end == MembershipEnd::kProgramBug);
  CHECK(table.last.member == 2);
}

TEST_CASE("commits of a sync, and of a place that was there before, are no progress") {
  const bool anew = GENERATE(false, true);
  MembershipTable table(2, {.min_np = 2});
  table.Start(1, 2);
  uint64_t epoch = 1, victim = 2;
  // The third time, with a commit more in each epoch: by its sync, or by the program once more.
  for (uint64_t number = 5; number <= 7; ++number) {
    table.now += 100;
    table.membership.Tick(table.now);
    table.Wants();
    MemberEnd end = Code(3);
    end.epoch = epoch;
    end.kept = {number, number - 1, anew ? number : 5, anew ? 77u : 0u};
    table.Die(victim, end);
    table.Stand({1}, epoch);
    table.membership.Quiet(0, epoch, end.kept, table.now);
    if (number == 7) break;
    table.now += 100;
    table.membership.Tick(table.now);
    table.Wants();
    victim = table.members.rbegin()->first;
    table.Stand({victim}, 0);
    REQUIRE(table.Wants() ==
            "propose" + std::to_string(epoch + 1) + ":1," + std::to_string(victim));
    table.membership.Started(++epoch, table.now);
  }
  CHECK(table.Wants().find("end") != std::string::npos);
  CHECK(table.last.end == MembershipEnd::kProgramBug);
  CHECK(table.last.member == victim);
  CHECK(table.end_text.find("the program fails by itself: a rank exited with code 3, as 2 others "
                            "did in its place") == 0);
}

TEST_CASE(
    "starts of a share whose ranks fail lie further and further apart, while the job gets on") {
  MembershipTable table(3, {.min_np = 1});
  table.Start(1, 3);
  std::vector<double> waits;
  uint64_t victim = 3;
  for (uint64_t step = 1; step <= 8; ++step) {
    table.Die(victim, Code(1, step));
    const double died = table.now;
    for (std::string wants = table.Wants(); wants.find("spawn") == std::string::npos;) {
      REQUIRE(table.membership.deadline() < died + 100);
      table.now = table.membership.deadline();
      table.membership.Tick(table.now);
      wants = table.Wants();
    }
    waits.push_back(table.now - died);
    victim = table.members.rbegin()->first;
  }
  const std::vector<double> expected = {0, 0.5, 1, 2, 4, 8, 16, 30};
  for (size_t i = 0; i < expected.size(); ++i) CHECK(waits[i] == Approx(expected[i]).margin(1e-6));
}

TEST_CASE("a rank that ends with code 0 while others go on is lost, and replaced") {
  MembershipTable table(2, {.min_np = 1});
  const bool left = GENERATE(false, true);
  SECTION("in the middle") {
    table.Start(1);
    table.EndWell(2, left);
    CHECK(table.Wants() == (left ? "" : "abort1"));
    CHECK(!table.membership.closed());
    table.membership.Broke(0, 1, "rank 1 has left the job while other ranks wait for it", 1);
    table.Wants();
    table.Stand({1}, 1);
    CHECK(table.Wants() == "spawn0:3");
    table.Quiet({0}, 1, 2);
    CHECK(table.Wants() == "propose2:1");
    table.membership.Started(2, 1);
    CHECK(table.Said().find("member 2 ended while other ranks went on; epoch 2: ") == 0);
  }
  SECTION("before it has begun") {
    table.membership.Listed({{"a", 2}}, 0);
    table.membership.HostReady(0, 0);
    table.Wants();
    table.EndWell(2, left);
    CHECK(table.Wants().empty());
    table.Stand({1}, 0);
    CHECK(table.Wants() == "spawn0:3");
  }
  SECTION("in its place again and again") {
    table.Start(1);
    uint64_t victim = 2;
    table.Stand({1}, 1);
    for (int again = 0; again < 3; ++again) {
      table.EndWell(victim, left);
      table.now += 100;
      table.membership.Tick(table.now);
      table.Wants();
      victim = table.members.rbegin()->first;
    }
    CHECK(table.Said().find("host h0: share 1 is left out: 3 ranks have died there") == 0);
  }
}

TEST_CASE("an epoch's line begins with who has died, not with what others said of it") {
  MembershipTable table(2, {.min_np = 1});
  table.Start(1);
  table.membership.Broke(0, 1, "rank 1 has left the job (shutdown) while other ranks wait for it",
                         1);
  table.Stand({1}, 1);
  table.Die(2, {.code = 3, .epoch = 1, .left = true, .what = "rank 1 on h0 exited with code 3"});
  table.Quiet({0}, 1, 2);
  CHECK(table.Wants() == "abort1 spawn0:3 propose2:1");
  table.membership.Started(2, 1);
  CHECK(table.Said() ==
        "rank 1 on h0 exited with code 3; epoch 2: 1 rank on 1 host; resumed at commit 2 after 0 "
        "ms");
}

TEST_CASE("the job's end is that of all ranks of its last epoch together") {
  MembershipTable table(3, {.min_np = 1});
  table.Start(1, 3);
  table.EndWell(1);
  table.EndWell(2, false);
  CHECK(!table.membership.closed());
  table.membership.Tick(10000);  // the last one may take its time
  CHECK(table.Wants() == "abort1");
  SECTION("all are well") {
    table.EndWell(3);
    CHECK(table.membership.closed());
    CHECK(table.Wants().empty());
  }
  SECTION("one fails: all begin again at the last commit, and the others have done no wrong") {
    table.Die(3, Code(7, 9));
    CHECK(!table.membership.closed());
    CHECK(table.Wants() == "spawn0:4,5,6");
    table.Stand({4, 5, 6}, 0);
    table.Quiet({0}, 1, 9);
    CHECK(table.Wants() == "propose2:4,5,6");
    CHECK(table.proposal.resume_commit() == 9);
    table.membership.Started(2, table.now);
    CHECK(table.Said().find("ended") == std::string::npos);
  }
  SECTION("one fails since they have gone") {
    table.Die(3, Code(1, 9, false));
    table.Stand({4, 5, 6}, 0);
    table.Quiet({0}, 1, 9);
    table.Wants();
    table.membership.Started(2, table.now);
    CHECK(table.Said().find("member 2 ended while other ranks went on, member 1 ended while") == 0);
  }
}

TEST_CASE("a program that never calls hvd_init ends well with its last process") {
  MembershipTable table(3, {.min_np = 1});
  table.membership.Listed({{"a", 2}, {"b", 1}}, 0);
  table.membership.HostReady(0, 0);
  table.Wants();
  for (const uint64_t member : {1, 2}) {
    MemberEnd end;
    end.what = "it ended";
    table.Die(member, end);
  }
  CHECK(table.Wants().empty());
  CHECK(!table.membership.closed());
  table.membership.HostReady(1, 1);
  CHECK(table.Wants() == "spawn1:3");
  table.Die(3, MemberEnd());
  CHECK(table.membership.closed());
}

TEST_CASE("a share in which ranks die again and again is left out, at last its host") {
  MembershipTable table(4, {.min_np = 1, .cooldown_least_s = 10});
  table.Start(2);
  // Ranks die in the first share of host 1, then in the other.
  uint64_t in_share[] = {3, 4};
  uint64_t next = 5;
  for (const int share : {0, 1}) {
    for (int death = 1; death <= 3; ++death) {
      table.Die(in_share[share]);
      table.now += 1;
      table.membership.Tick(table.now);
      const std::string wants = table.Wants();
      if (death == 3) CHECK(wants.find("spawn1") == std::string::npos);
      if (death < 3) CHECK(wants.find("spawn1:" + std::to_string(next)) != std::string::npos);
      in_share[share] = next;
      if (death < 3) ++next;
    }
  }
  table.Stand({1, 2}, 1);
  CHECK(table.Wants().empty());
  table.Quiet({0, 1}, 1, 0);
  CHECK(table.Wants() == "stop1 propose2:1,2");
  table.membership.Started(2, table.now);
  table.membership.HostGone(1, "stopped", table.now);
  CHECK(table.Wants().empty());
  table.membership.Tick(table.now + 11);
  CHECK(table.Wants() == "reach2");
  table.membership.HostReady(2, table.now + 50);
  CHECK(table.Wants() == "spawn2:9,10");
}

TEST_CASE(
    "where a share is left out that is needed, nothing is waited for unless the list may grow") {
  const bool may_grow = GENERATE(false, true);
  ElasticOptions options = {.min_np = 2, .elastic_timeout_s = 60};
  if (may_grow) options.discovery_script = "./hosts";
  MembershipTable table(2, options);
  table.Start(1);
  table.Die(1);
  table.Die(3);
  table.now += 1;
  table.membership.Tick(table.now);
  table.Die(4);
  table.Stand({2}, 1);
  CHECK(table.Wants() == "abort1 spawn0:3 spawn0:4");
  table.Quiet({0}, 1, 0);
  if (may_grow) {
    CHECK(table.Wants().empty());
    table.membership.Listed({{"h0", 3}}, 5);
    CHECK(table.Wants() == "spawn0:5");
    return;
  }
  CHECK(table.Wants() == "end");
  CHECK(table.last.end == MembershipEnd::kTooFew);
  CHECK(table.last.member == 4);
  CHECK(table.end_text.find("a rank died, as 2 others did in its place, and the job got no further "
                            "in between; 1 of at least 2 ranks are there, and no more can come") ==
        0);
}

TEST_CASE("a survivor that does not come back is ended and replaced") {
  MembershipTable table(3, {.min_np = 1, .elastic_timeout_s = 60});
  table.Start(1, 3);
  table.Die(1);
  table.Stand({2}, 1);
  CHECK(table.Wants() == "abort1 spawn0:4");
  table.Stand({4}, 0);
  CHECK(table.membership.deadline() == Approx(6));
  table.membership.Tick(6);
  CHECK(table.membership.deadline() == Approx(61));
  table.membership.Tick(61);
  CHECK(table.Wants() == "retire3");
  table.Die(3, {.signal = SIGTERM});
  CHECK(table.Wants() == "spawn0:5");
  table.Quiet({0}, 1, 2);
  CHECK(table.Wants() == "propose2:2,4");
}

TEST_CASE("an epoch that does not start is given up") {
  MembershipTable table(2, {.min_np = 1, .elastic_timeout_s = 60});
  table.membership.Listed({{"a", 2}}, 0);
  table.membership.HostReady(0, 0);
  table.Wants();
  table.Stand({1, 2}, 0);
  CHECK(table.Wants() == "propose1:1,2");
  table.membership.Tick(60);
  CHECK(table.Wants().empty());
  table.membership.Tick(61);
  CHECK(table.Wants() == "abort1");
  table.Stand({1, 2}, 1);
  CHECK(table.Wants() == "propose2:1,2");
}

}  // namespace
}  // namespace hvd::cli
