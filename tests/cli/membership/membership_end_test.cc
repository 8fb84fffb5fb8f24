// SPDX-License-Identifier: Apache-2.0
// What ends an elastic job, or leaves a share or a host out of it.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/membership/membership_table.h"

namespace hvd {
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
  table.Die(2, {.signal = SIGKILL, .commit = 4, .what = "rank 0 died"});
  table.Stand({3}, 0);
  table.Quiet({0}, 2, 4);
  CHECK(table.Wants() == "abort2 spawn0:4 end");
  CHECK(table.last.end == MembershipEnd::kResetLimit);
  CHECK(table.end_text.find("--reset-limit 1 allows") != std::string::npos);
  CHECK(table.end_text.find("epoch 2: 1 rank on 1 host; a rank died; resumed at commit 3 after "
                            "1.0 s") != std::string::npos);
}

MemberEnd Code(int code, uint64_t commit = 0, bool own = true) {
  MemberEnd end;
  end.code = code;
  end.commit = commit;
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

TEST_CASE("on one host it takes the same share, or all of them") {
  MembershipTable table(3, {.min_np = 1});
  table.Start(1, 3);
  table.Die(1, Code(7));
  table.Die(2, Code(7));
  CHECK(table.Wants() == "abort1 spawn0:4 spawn0:5");
  SECTION("the same share") {
    table.Die(4, Code(7));
    CHECK(table.Wants() == "end");
  }
  SECTION("all") {
    table.Die(3, Code(7));
    CHECK(table.Wants() == "end");
  }
}

TEST_CASE("a share in which ranks die again and again is left out, at last its host") {
  MembershipTable table(4, {.min_np = 1, .cooldown_least_s = 10});
  table.Start(2);
  // Of host 1 the first share, then the other.
  uint64_t in_share[] = {3, 4};
  uint64_t next = 5;
  for (const int share : {0, 1}) {
    for (int death = 1; death <= 3; ++death) {
      table.Die(in_share[share]);
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
  table.membership.HostGone(1, "stopped", 2);
  CHECK(table.Wants().empty());
  table.membership.Tick(11);
  CHECK(table.Wants() == "reach2");
  table.membership.HostReady(2, 12);
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
  CHECK(table.end_text.find("1 of at least 2 ranks are there, and no more can come") == 0);
}

TEST_CASE("a survivor that does not come back is ended and replaced") {
  MembershipTable table(3, {.min_np = 1, .elastic_timeout_s = 60});
  table.Start(1, 3);
  table.Die(1);
  table.Stand({2}, 1);
  CHECK(table.Wants() == "abort1 spawn0:4");
  CHECK(table.membership.deadline() == Approx(61));
  table.membership.Tick(61);
  CHECK(table.Wants() == "retire3");
  table.Die(3, {.signal = SIGTERM});
  CHECK(table.Wants() == "spawn0:5");
  table.Quiet({0}, 1, 2);
  CHECK(table.Wants() == "propose2:2");
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
}  // namespace hvd
