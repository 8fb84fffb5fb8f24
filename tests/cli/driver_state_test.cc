#include "cli/driver_state.h"

#include <signal.h>

#include <catch2/catch.hpp>

namespace hvd {
namespace {

// The table with two hosts (a: ranks 0-1, b: rank 2) and what it wants done, as words.
struct Table {
  explicit Table(JobPolicy policy = {}) : state(Topology({{"a", 2}, {"b", 1}}), policy, 0) {}

  std::string Wants() {
    std::string words;
    for (const Action& action : state.TakeActions()) {
      if (!words.empty()) words += " ";
      if (action.kind == Action::kLaunch) words += "launch";
      if (action.kind == Action::kSay) words += "say";
      if (action.kind != Action::kSend) continue;
      const v1::Command& command = action.command;
      if (command.has_epoch_table()) words += "table";
      if (command.has_epoch_go()) words += "go";
      if (command.has_epoch_abort()) words += "abort";
      if (command.has_stop()) words += command.stop().kill() ? "kill" : "stop";
      if (command.has_signal()) words += "signal";
    }
    return words;
  }

  void Start() {
    for (const int host : {0, 1}) state.HostGreeted(host, 0.01);
    REQUIRE(Wants() == "launch");
    for (const int host : {0, 1}) {
      v1::Event event;
      event.mutable_launched();
      state.Heard(host, event, 0.02);
    }
    for (const int rank : {0, 1, 2}) {
      v1::Event event;
      event.mutable_rank_started()->set_rank(rank);
      state.Heard(rank / 2, event, 0.03);
    }
    REQUIRE(Wants().empty());
  }

  void Exit(int rank, int code, int signal = 0, bool after_abort = false, bool joined = true,
            bool left = true) {
    v1::Event event;
    v1::RankExited* exit = event.mutable_rank_exited();
    exit->set_rank(rank);
    exit->set_exit_code(code);
    exit->set_signal(signal);
    exit->set_after_abort(after_abort);
    exit->set_joined(joined);
    exit->set_left(left);
    state.Heard(rank / 2, event, now);
    for (int stream = 0; stream < 2; ++stream) state.StreamMoved(rank, true, now);
  }

  void Stopped(int host) {
    v1::Event event;
    event.mutable_stopped();
    state.Heard(host, event, now);
  }

  Verdict Judged() const { return Judge(state.facts()); }

  JobState state;
  double now = 1;
};

TEST_CASE("nothing is launched before every host has spoken") {
  Table table;
  table.state.HostGreeted(0, 0);
  CHECK(table.Wants().empty());
  table.state.HostGreeted(1, 0);
  CHECK(table.Wants() == "launch");
}

TEST_CASE("success needs no word to the hosts and no waiting") {
  Table table;
  table.Start();
  for (const int rank : {0, 1, 2}) table.Exit(rank, 0);
  CHECK(table.Wants().empty());
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 0);
}

TEST_CASE("an epoch that ranks of one host have aborted is aborted on the others, once") {
  Table table;
  table.Start();
  v1::Event event;
  event.mutable_rank_left()->set_epoch(2);
  table.state.Heard(0, event, 1);
  CHECK(table.Wants().empty());
  event.mutable_rank_left()->set_aborted("rank 0 has left");
  table.state.Heard(0, event, 1);
  const std::vector<Action> actions = table.state.TakeActions();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].host == 1);
  CHECK(actions[0].command.epoch_abort().epoch() == 2);
  CHECK(actions[0].command.epoch_abort().cause() == "rank 0 has left");
  table.state.Heard(1, event, 1);
  CHECK(table.Wants().empty());
  CHECK_FALSE(table.state.finished());
}

// Rank 1 has left its epoch, and rank 0 has ended with an error for that.
void Miss(Table* table) {
  v1::Event event;
  v1::RankExited* exit = event.mutable_rank_exited();
  exit->set_exit_code(1);
  exit->set_after_abort(true);
  exit->set_aborted("somebody is missed");
  exit->set_leaver(1);
  table->state.Heard(0, event, table->now);
}

TEST_CASE("the rank that others missed may end by itself before the rest is stopped") {
  Table table;
  table.Start();
  Miss(&table);
  CHECK(table.Wants().empty());
  CHECK(table.state.deadline() == Approx(table.now + 1));
  SECTION("and is the culprit if it fails") {
    table.now = 1.5;
    table.Exit(1, 3, 0, true);
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().index == 1);
    CHECK(table.Judged().exit_code == 3);
  }
  SECTION("and is not if it does not") {
    table.Exit(1, 0);
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().index == 0);
  }
  SECTION("but not for ever") {
    table.state.Tick(1.9);
    CHECK(table.Wants().empty());
    table.state.Tick(2);
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().index == 0);
  }
  SECTION("other failures stop the job as always") {
    table.Exit(2, 0, SIGKILL);
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().index == 2);
  }
}

TEST_CASE("a rank that comes back is missed no more") {
  Table table;
  table.Start();
  v1::Event event;
  event.mutable_rank_left()->set_epoch(1);
  event.mutable_rank_left()->set_aborted("somebody is missed");
  event.mutable_rank_left()->set_leaver(1);
  table.state.Heard(0, event, 1);
  CHECK(table.state.facts().ranks[1].missed);
  event.mutable_rank_joined()->set_rank(1);
  event.mutable_rank_joined()->set_epoch(2);
  table.state.Heard(0, event, 1);
  CHECK_FALSE(table.state.facts().ranks[1].missed);
}

TEST_CASE("words name nobody, and neither does a number that no rank has") {
  Table table;
  table.Start();
  v1::Event event;
  event.mutable_rank_left()->set_epoch(1);
  event.mutable_rank_left()->set_aborted("rank 1 has left the job (shutdown) while others");
  table.state.Heard(0, event, 1);
  for (const uint32_t none : {3u, 0x7fffffffu, 0xffffffffu}) {
    event.mutable_rank_left()->set_leaver(none);
    table.state.Heard(0, event, 1);
  }
  for (const RankFact& fact : table.state.facts().ranks) CHECK_FALSE(fact.missed);
}

TEST_CASE("success waits for the output's end, and not for ever") {
  Table table;
  table.Start();
  table.Exit(0, 0);
  table.Exit(1, 0);
  v1::Event event;
  event.mutable_rank_exited()->set_rank(2);
  event.mutable_rank_exited()->set_left(true);
  table.state.Heard(1, event, 1);
  CHECK_FALSE(table.state.finished());
  table.state.StreamMoved(2, true, 1.5);
  CHECK_FALSE(table.state.finished());
  SECTION("the end comes") {
    table.state.StreamMoved(2, true, 1.6);
    CHECK(table.state.finished());
  }
  SECTION("a grandchild holds the stream") {
    CHECK(table.state.deadline() == Approx(3.5));
    table.state.Tick(3.6);
    CHECK(table.state.finished());
  }
  SECTION("the console is stopped: its time does not count") {
    table.state.OutputPaused(true, 1.6);
    table.state.Tick(100);
    CHECK_FALSE(table.state.finished());
    table.state.OutputPaused(false, 100);
    CHECK_FALSE(table.state.finished());
    table.state.Tick(103);
    CHECK(table.state.finished());
  }
}

TEST_CASE("the first failure aborts and stops everywhere, once") {
  Table table;
  table.Start();
  table.Exit(1, 7);
  CHECK(table.Wants() == "abort stop");
  table.Exit(2, 1, 0, true);
  CHECK(table.Wants().empty());
  table.Exit(0, 0, SIGTERM, true);
  CHECK_FALSE(table.state.finished());
  table.Stopped(0);
  table.Stopped(1);
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 7);
  CHECK(table.Judged().index == 1);
}

TEST_CASE("a stop that takes long is announced, and one that never ends is left") {
  Table table({.grace_s = 5});
  table.Start();
  table.Exit(1, 7);
  table.Wants();
  CHECK(table.state.deadline() == Approx(1.3));
  table.state.Tick(1.4);
  CHECK(table.Wants() == "say");
  CHECK(table.state.deadline() == Approx(9));
  table.state.Tick(9.1);
  CHECK(table.state.finished());
}

TEST_CASE("a lost host ends the job; its detail is waited for, but not long") {
  Table table;
  table.Start();
  table.state.HostLost(1, "the connection closed", 1);
  CHECK(table.Wants() == "abort stop");
  table.Exit(0, 0, SIGTERM, true);
  table.Exit(1, 0, SIGTERM, true);
  table.Stopped(0);
  CHECK_FALSE(table.state.finished());
  SECTION("it comes") {
    table.state.HostDetail(1, "hvdd was killed", 1.01);
    CHECK(table.state.facts().hosts[1].cause == "the connection closed; hvdd was killed");
  }
  SECTION("it does not come") { table.state.Tick(1.05); }
  CHECK(table.state.finished());
  CHECK(table.Judged().kind == Verdict::kHost);
  CHECK(table.Judged().exit_code == 125);
}

TEST_CASE("the same launch fault is gathered from all hosts") {
  Table table;
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
  Table table;
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

TEST_CASE("a rank that exits 0 without leaving: the others are told, not stopped") {
  Table table;
  table.Start();
  table.Exit(0, 0, 0, false, true, false);
  CHECK(table.Wants() == "abort");
  SECTION("nobody needed it") {
    table.Exit(1, 0);
    table.Exit(2, 0);
    CHECK(table.state.finished());
    CHECK(table.Judged().exit_code == 0);
  }
  SECTION("somebody did: the one who left is the culprit") {
    table.Exit(1, 3, 0, true);
    CHECK(table.Wants() == "abort stop");
    table.Exit(2, 0, SIGTERM, true);
    table.Stopped(0);
    table.Stopped(1);
    CHECK(table.state.finished());
    CHECK(table.Judged().index == 0);
    CHECK(table.Judged().exit_code == 1);
  }
}

TEST_CASE("a program that knows nothing of hvd may end rank by rank") {
  Table table;
  table.Start();
  for (const int rank : {2, 0, 1}) table.Exit(rank, 0, 0, false, false, false);
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 0);
}

TEST_CASE("Ctrl-C once stops, twice kills") {
  Table table;
  table.Start();
  table.state.Signalled(SIGINT, 2);
  CHECK(table.Wants() == "say abort stop");
  table.state.Signalled(SIGINT, 3);
  CHECK(table.Wants() == "say kill");
  for (const int rank : {0, 1, 2}) table.Exit(rank, 0, SIGKILL, true);
  table.Stopped(0);
  table.Stopped(1);
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 130);
}

TEST_CASE("a failure before Ctrl-C keeps its code") {
  Table table;
  table.Start();
  table.Exit(1, 7);
  table.state.Signalled(SIGINT, 2);
  CHECK(table.Judged().exit_code == 7);
}

TEST_CASE("other signals go to the ranks") {
  Table table;
  table.Start();
  table.state.Signalled(SIGUSR2, 2);
  CHECK(table.Wants() == "signal");
}

TEST_CASE("timeouts: of the job, of the launch, of the first epoch") {
  SECTION("job") {
    Table table({.run_timeout_s = 10});
    table.Start();
    CHECK(table.state.deadline() == Approx(10));
    table.state.Tick(10);
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().exit_code == 124);
  }
  SECTION("launch") {
    Table table({.start_timeout_s = 3});
    for (const int host : {0, 1}) table.state.HostGreeted(host, 0);
    v1::Event event;
    event.mutable_launched();
    table.state.Heard(0, event, 1);
    table.state.Tick(3);
    CHECK(table.Judged().kind == Verdict::kHost);
    CHECK(table.Judged().index == 1);
  }
  SECTION("first epoch") {
    Table table({.start_timeout_s = 3});
    table.Start();
    for (const uint32_t rank : {0, 1}) {
      v1::Event event;
      event.mutable_rank_joined()->set_epoch(1);
      event.mutable_rank_joined()->set_rank(rank);
      table.state.Heard(0, event, 10 + rank);
    }
    CHECK(table.state.deadline() == Approx(13));
    table.state.Tick(13);
    CHECK(table.Judged().exit_code == 125);
    CHECK(table.state.facts().ending_text.find("b (rank 2)") != std::string::npos);
  }
}

TEST_CASE("the epoch's steps") {
  Table table;
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
  CHECK(table.Wants() == "go");
}

TEST_CASE("words of a daemon about ranks that do not exist change nothing") {
  Table table;
  table.Start();
  v1::Event event;
  event.mutable_rank_exited()->set_rank(99);
  table.state.Heard(0, event, 1);
  event.mutable_rank_started()->set_rank(99);
  table.state.Heard(0, event, 1);
  event.mutable_rank_broke()->set_rank(99);
  table.state.Heard(0, event, 1);
  table.state.StreamMoved(99, true, 1);
  CHECK(table.Wants().empty());
  CHECK_FALSE(table.state.finished());
}

}  // namespace
}  // namespace hvd
