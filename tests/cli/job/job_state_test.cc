// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_state.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/job/driver_table.h"

namespace hvd::cli {
namespace {

TEST_CASE("what each rank has of its host is said where that is asked for") {
  DriverTable table({.report_bindings = true});
  for (const int host : {0, 1}) table.state.HostGreeted(host, 0);
  table.state.TakeActions();
  v1::Event event;
  v1::SlotShare& share = *event.mutable_launched()->add_shares();
  for (const int core : {0, 1, 4}) share.add_cores(core);
  share.add_gpus()->set_uuid("GPU-12345678-9");
  share.mutable_gpus(0)->set_name("NVIDIA\x1b A");
  share.set_visible(2);
  event.mutable_launched()->add_shares()->set_slot(1);
  table.state.Heard(0, event, 0.1);
  const std::vector<Action> actions = table.state.TakeActions();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].text ==
        "rank 0: host a, slot 0, cores 0-1,4, GPU GPU-12345678 NVIDIA\\x1b A (index 0 of 2)");
  CHECK(actions[1].text == "rank 1: host a, slot 1, cores -, GPU -");
}

TEST_CASE("nothing is launched before every host has spoken") {
  DriverTable table;
  table.state.HostGreeted(0, 0);
  CHECK(table.Wants().empty());
  table.state.HostGreeted(1, 0);
  CHECK(table.Wants() == "prepare propose1 spawn spawn");
}

TEST_CASE("success needs no word to the hosts and no waiting") {
  DriverTable table;
  table.Start();
  for (const int rank : {0, 1, 2}) table.Exit(rank);
  CHECK(table.Wants().empty());
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 0);
}

TEST_CASE("success waits for the output's end, and not for ever") {
  DriverTable table;
  table.Start();
  table.Exit(0);
  table.Exit(1);
  v1::Event event;
  event.mutable_rank_exited()->set_member(MemberOf(2));
  event.mutable_rank_exited()->set_left(true);
  table.state.Heard(1, event, 1);
  CHECK_FALSE(table.state.finished());
  table.state.StreamMoved(2, true, 1.5);
  CHECK_FALSE(table.state.finished());
  SECTION("the end comes") {
    table.state.StreamMoved(2, true, 1.6);
    CHECK(table.state.finished());
    CHECK(Judge(table.state.facts()).exit_code == 0);
  }
  SECTION("it never comes: something may be lost") {
    CHECK(table.state.deadline() == Approx(11.5));
    table.state.Tick(11.4);
    CHECK_FALSE(table.state.finished());
    table.state.Tick(11.6);
    CHECK(table.state.finished());
    CHECK(
        table.state.facts().lost_output ==
        std::vector<std::string>{"the end of the ranks' output has not come (1 of their streams)"});
    CHECK(Judge(table.state.facts()).exit_code == 1);
  }
  SECTION("the console is stopped: its time does not count") {
    table.state.OutputPaused(true, 1.6);
    table.state.Tick(100);
    CHECK_FALSE(table.state.finished());
    table.state.OutputPaused(false, 100);
    CHECK_FALSE(table.state.finished());
    table.state.Tick(111);
    CHECK(table.state.finished());
  }
}

TEST_CASE("the first failure aborts and stops everywhere, once") {
  DriverTable table;
  table.Start();
  table.Exit(1, {.code = 7});
  CHECK(table.Wants() == "abort stop");
  table.Exit(2, {.code = 1, .after_abort = true});
  CHECK(table.Wants().empty());
  table.Exit(0, {.signal = SIGTERM, .after_abort = true});
  CHECK_FALSE(table.state.finished());
  table.Stopped(0);
  table.Stopped(1);
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 7);
  CHECK(table.Judged().index == 1);
}

TEST_CASE(
    "of two failures the first is blamed, though something held its output and it is told later") {
  DriverTable table;
  table.Start();
  table.Exit(2, {.code = 3});
  table.now = 1.5;
  table.Exit(0, {.code = 7, .told_after_s = 0.8});
  CHECK(table.state.facts().ranks[0].ended_s == Approx(0.7));
  CHECK(table.Judged().index == 0);
  CHECK(table.Judged().exit_code == 7);
}

TEST_CASE("a stop that takes long is announced, and one that never ends is left") {
  DriverTable table({.grace_s = 5});
  table.Start();
  table.Exit(1, {.code = 7});
  table.Wants();
  CHECK(table.state.deadline() == Approx(1.3));
  table.state.Tick(1.4);
  CHECK(table.Wants() == "say");
  CHECK(table.state.deadline() == Approx(9));
  table.state.Tick(9.1);
  CHECK(table.state.finished());
}

TEST_CASE("a lost host ends the job; its detail is waited for, but not long") {
  DriverTable table;
  table.Start();
  table.state.HostLost(1, "the connection closed", 1);
  CHECK(table.Wants() == "abort stop");
  table.Exit(0, {.signal = SIGTERM, .after_abort = true});
  table.Exit(1, {.signal = SIGTERM, .after_abort = true});
  table.Stopped(0);
  CHECK_FALSE(table.state.finished());
  SECTION("it comes") {
    table.state.HostDetail(1, {"hvdd was killed", ""}, 1.01);
    CHECK(table.state.facts().hosts[1].cause == "the connection closed; hvdd was killed");
  }
  SECTION("it does not come") { table.state.Tick(1.05); }
  CHECK(table.state.finished());
  CHECK(table.Judged().kind == Verdict::kHost);
  CHECK(table.Judged().exit_code == 125);
}

TEST_CASE("the same launch fault is gathered from all hosts") {
  DriverTable table;
  HostFact fault;
  fault.fault_code = 125;
  fault.cause = "connection refused";
  table.state.HostNotStarted(0, fault, 1);
  CHECK_FALSE(table.state.finished());
  SECTION("both say it") { table.state.HostNotStarted(1, fault, 1.1); }
  SECTION("the other says nothing") { table.state.Tick(1.21); }
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 125);
}

TEST_CASE("a command that cannot be started gives its code") {
  DriverTable table;
  for (const int host : {0, 1}) table.state.HostGreeted(host, 0);
  v1::Event event;
  event.mutable_launch_failed()->set_exit_code(127);
  table.state.Heard(0, event, 1);
  table.state.Heard(1, event, 1);
  table.Stopped(0);
  table.Stopped(1);
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 127);
}

TEST_CASE("Ctrl-C once stops, twice kills") {
  DriverTable table;
  table.Start();
  table.state.Signalled(SIGINT, 2);
  CHECK(table.Wants() == "say close");
  table.state.Signalled(SIGINT, 3);
  CHECK(table.Wants() == "say kill");
  for (const int rank : {0, 1, 2}) table.Exit(rank, {.signal = SIGKILL, .after_abort = true});
  table.Stopped(0);
  table.Stopped(1);
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 130);
}

TEST_CASE("a failure before Ctrl-C keeps its code") {
  DriverTable table;
  table.Start();
  table.Exit(1, {.code = 7});
  table.state.Signalled(SIGINT, 2);
  CHECK(table.Judged().exit_code == 7);
}

TEST_CASE("other signals go to the ranks") {
  DriverTable table;
  table.Start();
  table.state.Signalled(SIGUSR2, 2);
  CHECK(table.Wants() == "signal");
}

TEST_CASE("timeouts: of the job, of the launch, of the first epoch") {
  SECTION("job") {
    DriverTable table({.run_timeout_s = 10});
    table.Start();
    CHECK(table.state.deadline() == Approx(10));
    table.state.Tick(10);
    CHECK(table.Wants() == "close");
    CHECK(table.Judged().exit_code == 124);
  }
  SECTION("launch") {
    DriverTable table({.start_timeout_s = 3});
    for (const int host : {0, 1}) table.state.HostGreeted(host, 0);
    v1::Event event;
    event.mutable_launched();
    table.state.Heard(0, event, 1);
    table.state.Tick(3);
    CHECK(table.Judged().kind == Verdict::kHost);
    CHECK(table.Judged().index == 1);
  }
  SECTION("first epoch") {
    DriverTable table({.start_timeout_s = 3});
    table.Start();
    for (const uint32_t rank : {0, 1}) {
      v1::Event event;
      event.mutable_rank_joined()->set_epoch(1);
      event.mutable_rank_joined()->set_member(MemberOf(rank));
      table.state.Heard(0, event, 10 + rank);
    }
    CHECK(table.state.deadline() == Approx(13));
    table.state.Tick(13);
    CHECK(table.Judged().exit_code == 125);
    CHECK(table.state.facts().ending_text.find("b (rank 2)") != std::string::npos);
  }
}

TEST_CASE("the epoch's steps") {
  DriverTable table;
  table.Start();
  for (const int host : {1, 0}) {
    v1::Event event;
    event.mutable_host_addresses()->set_epoch(1);
    table.state.Heard(host, event, 1);
  }
  CHECK(table.Wants() == "table");
  for (const int host : {0, 1}) {
    v1::Event event;
    event.mutable_host_ready()->set_epoch(1);
    table.state.Heard(host, event, 1);
  }
  CHECK(table.Wants() == "go propose2");  // nobody has to ask for the next
}

TEST_CASE("a member that stands is proposed one epoch, however many ask for it") {
  DriverTable table;
  table.Start();
  v1::Event event;
  for (const int rank : {0, 1, 2}) {
    event.mutable_member_stands()->set_member(MemberOf(rank));
    event.mutable_member_stands()->set_after_epoch(1);  // it was refused that one
    table.state.Heard(rank / 2, event, 1);
    CHECK(table.Wants() == (rank == 0 ? "propose2" : ""));
  }
  event.mutable_member_stands()->set_after_epoch(2);
  table.state.Heard(0, event, 1);
  CHECK(table.Wants() == "propose3");
}

TEST_CASE("words of a daemon about ranks that do not exist change nothing") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_rank_exited()->set_member(MemberOf(99));
  table.state.Heard(0, event, 1);
  event.mutable_rank_started()->set_member(MemberOf(99));
  table.state.Heard(0, event, 1);
  event.mutable_rank_broke()->set_member(MemberOf(99));
  table.state.Heard(0, event, 1);
  table.state.StreamMoved(99, true, 1);
  CHECK(table.Wants().empty());
  CHECK_FALSE(table.state.finished());
}

}  // namespace
}  // namespace hvd::cli
