// SPDX-License-Identifier: Apache-2.0
// What the job's state table makes of ranks that leave or abort an epoch while others are in it.
#include <signal.h>

#include <catch2/catch.hpp>

#include "cli/report/verdict_text.h"
#include "tests/cli/job/driver_table.h"

namespace hvd::cli {
namespace {

TEST_CASE("an epoch that ranks of one host have aborted is aborted on the others, once") {
  DriverTable table;
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

v1::MemberDied KilledIn(uint64_t epoch, uint32_t rank) {
  v1::MemberDied died;
  died.set_member(MemberOf(rank));
  died.set_signal(SIGKILL);
  died.set_epoch(epoch);
  died.set_cause("rank 2 on b was killed by signal 9 (Killed) without hvd's shutdown");
  return died;
}

TEST_CASE("a death inside an epoch is told to the other hosts at once, and stops nothing yet") {
  DriverTable table;
  table.Start();
  table.Died(KilledIn(1, 2));
  const std::vector<Action> actions = table.state.TakeActions();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].host == 0);
  CHECK(actions[0].command.epoch_abort().epoch() == 1);
  CHECK(actions[0].command.epoch_abort().cause() == KilledIn(1, 2).cause());
  SECTION("its whole end stops the job") { table.Exit(2, {.signal = SIGKILL, .left = false}); }
  SECTION("and so does the end of one that ended for it, which is not blamed") {
    table.Exit(0, {.code = 1, .after_abort = true, .left = false});
    const std::vector<Action> stop = table.state.TakeActions();
    REQUIRE(stop.size() == 2);
    CHECK(stop[1].command.stop().cause() == "rank 2 on b was killed by signal 9 (Killed)");
    table.Exit(2, {.signal = SIGKILL, .left = false});
    CHECK(table.Judged().index == 2);
    return;
  }
  CHECK(table.Wants() == "abort stop");
  CHECK(table.Judged().index == 2);
}

TEST_CASE("a death that others cannot wait for is told to no other host") {
  DriverTable table;
  table.Start();
  v1::MemberDied died = KilledIn(1, 2);
  SECTION("it had left") { died.set_left(true); }
  SECTION("its epoch had been aborted by the driver's word") { died.set_after_abort(true); }
  SECTION("it was a wrapper of the process that speaks for it") { died.set_spoken_for(true); }
  SECTION("it had joined none, and nobody waits for it") { died.set_epoch(0); }
  table.Died(died);
  CHECK(table.Wants().empty());
}

TEST_CASE("an abort by ranks of which only the dead one's host knows is told on") {
  DriverTable table;
  table.Start();
  v1::MemberDied died = KilledIn(1, 2);
  died.set_after_abort(true);
  died.set_aborted("rank 2 has no memory left");
  table.Died(died);
  const std::vector<Action> actions = table.state.TakeActions();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].command.epoch_abort().cause() == "rank 2 has no memory left");
}

TEST_CASE("who waits in hvd_init for a rank that has died is told at once") {
  DriverTable table;
  table.Start();
  v1::Event joined;
  joined.mutable_rank_joined()->set_member(MemberOf(0));
  joined.mutable_rank_joined()->set_epoch(1);
  const bool before = GENERATE(true, false);
  if (before) table.state.Heard(0, joined, table.now);
  table.Died(KilledIn(0, 2));
  if (!before) table.state.Heard(0, joined, table.now);
  const std::vector<Action> actions = table.state.TakeActions();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].command.epoch_abort().epoch() == 1);
  CHECK(actions[0].command.epoch_abort().cause() == KilledIn(0, 2).cause());
}

// Rank 1 has aborted its epoch, and rank 0 has ended with an error for that.
void EndForRank1(DriverTable* table) {
  v1::Event event;
  v1::RankExited* exit = event.mutable_rank_exited();
  exit->set_member(MemberOf(0));
  exit->set_exit_code(1);
  exit->set_after_abort(true);
  exit->set_aborted("somebody cannot go on");
  exit->set_abort_rank(1);
  table->state.Heard(0, event, table->now);
}

TEST_CASE("the rank whose doing an abort is may end by itself before the rest is stopped") {
  DriverTable table;
  table.Start();
  EndForRank1(&table);
  CHECK(table.Wants().empty());
  CHECK(table.state.deadline() == Approx(table.now + 1));
  SECTION("and is the culprit if it fails") {
    table.now = 1.5;
    table.Exit(1, {.code = 3, .after_abort = true});
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().index == 1);
    CHECK(table.Judged().exit_code == 3);
  }
  SECTION("and is not if it does not") {
    table.Exit(1);
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
    table.Exit(2, {.signal = SIGKILL});
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().index == 2);
  }
}

TEST_CASE(
    "a rank that ends for what it has done itself is not waited for, whatever its abort says") {
  DriverTable table;
  table.Start();
  v1::Event event;
  v1::RankExited* exit = event.mutable_rank_exited();
  exit->set_member(MemberOf(1));
  exit->set_exit_code(3);
  exit->set_after_abort(true);
  exit->set_aborted("rank 0 is named here");
  exit->set_abort_rank(1);
  table.state.Heard(0, event, 1);
  CHECK(table.Wants() == "abort stop");
  table.Exit(0, {.code = 1, .after_abort = true});
  CHECK(table.Judged().index == 1);
  CHECK(table.Judged().exit_code == 3);
}

TEST_CASE("a rank that comes back is the cause no more") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_rank_left()->set_epoch(1);
  event.mutable_rank_left()->set_aborted("somebody cannot go on");
  event.mutable_rank_left()->set_abort_rank(1);
  table.state.Heard(0, event, 1);
  CHECK(table.state.facts().ranks[1].cause);
  event.mutable_rank_joined()->set_member(MemberOf(1));
  event.mutable_rank_joined()->set_epoch(2);
  table.state.Heard(0, event, 1);
  CHECK_FALSE(table.state.facts().ranks[1].cause);
}

TEST_CASE("words name nobody, and neither does a number that no rank has") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_rank_left()->set_epoch(1);
  event.mutable_rank_left()->set_aborted("rank 1 has left the job (shutdown) while others");
  table.state.Heard(0, event, 1);
  for (const uint32_t none : {3u, 0x7fffffffu, 0xffffffffu}) {
    event.mutable_rank_left()->set_abort_rank(none);
    table.state.Heard(0, event, 1);
  }
  for (const RankFact& fact : table.state.facts().ranks) CHECK_FALSE(fact.cause);
}

TEST_CASE("a worker's death behind a wrapper aborts at once; the wrapper gets a moment to end") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_rank_broke()->set_member(MemberOf(1));
  event.mutable_rank_broke()->set_message("rank 1 on a: its worker (pid 7) died");
  event.mutable_rank_broke()->mutable_worker()->set_pid(7);
  table.state.Heard(0, event, 1);
  CHECK(table.Wants() == "abort");
  SECTION("it lives on") {
    CHECK(table.state.deadline() < 1.5);
    table.state.Tick(1.3);
    CHECK(table.Wants() == "abort stop");
    table.now = 1.4;
    table.Exit(1, {0, 15});
    CHECK(table.Judged().exit_code == 1);  // nobody knows how the worker ended
  }
  SECTION("it ends by itself, after those who waited") {
    table.now = 1.05;
    table.Exit(2, {1, 0, true});
    CHECK(table.Wants().empty());
    table.Exit(1, {9});
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().exit_code == 9);
  }
  CHECK(table.Judged().index == 1);
}

TEST_CASE("a pause of hvdrun longer than the lease is nobody else's fault") {
  DriverTable table;
  table.Start();
  SECTION("it knows at once") { table.state.Paused(12, 20); }
  SECTION("a host's lease has just ended") {
    table.state.Paused(9.9, 20);
    CHECK(table.Wants().empty());
    v1::Event event;
    event.mutable_lease_ended();
    table.state.Heard(1, event, 20.1);
  }
  table.state.HostLost(1, "the connection closed", 20.2);
  CHECK(table.Judged().kind == Verdict::kEnding);
  CHECK(table.Judged().exit_code == 125);
  CHECK(table.state.facts().ending == Ending::kPaused);
}

TEST_CASE("a host's lease that ends without a pause of ours is a lost host") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_lease_ended();
  table.state.Heard(1, event, 20);
  CHECK(table.Judged().kind == Verdict::kHost);
  CHECK(table.Judged().index == 1);
}

TEST_CASE("a broken link that began the stop is explained by the loss of its host, told later") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_rank_broke()->set_member(MemberOf(1));
  event.mutable_rank_broke()->set_message("rank 1 on a died");
  table.state.Heard(0, event, 1);
  CHECK(table.Wants() == "abort stop");
  SECTION("by its hvdd, which goes on") {
    event.mutable_launch_failed()->set_message("the shim was killed");
    table.state.Heard(0, event, 1.1);
    CHECK(table.Judged().kind == Verdict::kHost);
    CHECK(table.Judged().index == 0);
  }
  SECTION("by its connection") {
    table.state.HostLost(0, "the connection closed", 1.1);
    CHECK(table.Judged().kind == Verdict::kHost);
    CHECK(table.Judged().index == 0);
  }
  SECTION("another host's loss is a consequence") {
    table.state.HostLost(1, "the connection closed", 1.1);
    CHECK(table.Judged().kind == Verdict::kRank);
    CHECK(table.Judged().index == 1);
  }
}

TEST_CASE("a rank that exits 0 without leaving: the others are told, not stopped") {
  DriverTable table;
  table.Start();
  table.Exit(0, {.left = false});
  CHECK(table.Wants() == "abort");
  SECTION("nobody needed it") {
    table.Exit(1);
    table.Exit(2);
    CHECK(table.state.finished());
    CHECK(table.Judged().exit_code == 0);
  }
  SECTION("somebody did: the one who left is the culprit") {
    table.Exit(1, {.code = 3, .after_abort = true});
    CHECK(table.Wants() == "abort stop");
    table.Exit(2, {.signal = SIGTERM, .after_abort = true});
    table.Stopped(0);
    table.Stopped(1);
    CHECK(table.state.finished());
    CHECK(table.Judged().index == 0);
    CHECK(table.Judged().exit_code == 1);
  }
}

}  // namespace
}  // namespace hvd::cli
