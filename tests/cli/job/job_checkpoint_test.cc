// SPDX-License-Identifier: Apache-2.0
// A job that a person or a scheduler ends while all is well: its ranks may agree on a last
// checkpoint.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/job/driver_table.h"

namespace hvd::cli {
namespace {

struct Terminated : DriverTable {
  Terminated() : DriverTable({.grace_s = 20}) {
    Start();
    now = 2;
    state.Signalled(SIGTERM, now);
    REQUIRE(Wants() == "close");
  }

  void DiedOf(int rank, const std::string& cause, bool left = false) {
    v1::MemberDied died;
    died.set_member(MemberOf(rank));
    died.set_epoch(1);
    died.set_cause(cause);
    died.set_left(left);
    died.set_after_abort(true);
    Died(died);
  }
  void AllStopped() {
    for (const int host : {0, 1}) Stopped(host);
  }
};

TEST_CASE("after TERM ranks that leave in good order disturb nobody; the code is TERM's") {
  Terminated table;
  for (const int rank : {0, 1, 2}) {
    table.DiedOf(rank, "rank exited (code 0)", true);
    table.Exit(rank);
    CHECK(table.Wants() == "");
  }
  table.AllStopped();
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 143);
}

TEST_CASE("after TERM the first death ends what the others wait for, once, on all hosts") {
  Terminated table;
  table.DiedOf(1, "rank 1 on a was killed by signal 15");
  CHECK(table.Wants() == "stop");
  CHECK(table.stop_cause == "stopped by SIGTERM; rank 1 on a was killed by signal 15");
  table.DiedOf(2, "rank 2 on b was killed by signal 15");
  table.Exit(1, {.signal = SIGTERM, .after_abort = true, .left = false});
  CHECK(table.Wants() == "");
  for (const int rank : {0, 2}) table.Exit(rank, {.signal = SIGTERM, .after_abort = true});
  table.AllStopped();
  CHECK(table.Judged().exit_code == 143);
}

TEST_CASE("after TERM a rank that fails behind its hvd_shutdown disturbs nobody") {
  Terminated table;
  table.DiedOf(1, "rank 1 on a exited (code 85)", true);
  table.Exit(1, {.code = 85, .after_abort = true});
  CHECK(table.Wants() == "");
}

TEST_CASE("after TERM a lost host, a broken link and an epoch that ranks end do so as well") {
  Terminated table;
  SECTION("host") { table.state.HostLost(1, "the connection closed", 3); }
  SECTION("link") {
    v1::Event event;
    event.mutable_rank_broke()->set_member(MemberOf(2));
    event.mutable_rank_broke()->set_message("rank 2 on b has closed its link");
    table.state.Heard(1, event, 3);
  }
  SECTION("epoch") {
    v1::Event event;
    event.mutable_rank_left()->set_member(MemberOf(2));
    event.mutable_rank_left()->set_epoch(1);
    event.mutable_rank_left()->set_aborted("rank 2 has left the job");
    table.state.Heard(1, event, 3);
  }
  CHECK(table.Wants() == "stop");
}

TEST_CASE("after TERM the grace is waited for; a second signal kills at once") {
  Terminated table;
  CHECK(table.state.deadline() <= 2.3);  // tells the person
  table.state.Tick(2.3);
  CHECK(table.Wants() == "say");
  CHECK(table.state.deadline() > 22);
  SECTION("nothing ends it") {
    table.state.Tick(table.state.deadline());
    CHECK(table.Wants() == "");
  }
  SECTION("a second signal") {
    table.state.Signalled(SIGTERM, 3);
    CHECK(table.Wants() == "say kill");
    table.DiedOf(1, "rank 1 on a was killed by signal 9");
    CHECK(table.Wants() == "");
  }
}

// Seconds that the newest stop gives the ranks.
double GraceOf(DriverTable* table) {
  double grace_s = -1;
  for (const Action& action : table->state.TakeActions()) {
    if (action.command.has_stop()) grace_s = action.command.stop().grace_s();
  }
  return grace_s;
}

void AskGrace(DriverTable* table, int rank, uint64_t seconds) {
  v1::Event event;
  event.mutable_grace_asked()->set_member(MemberOf(rank));
  event.mutable_grace_asked()->set_milliseconds(1000 * seconds);
  table->state.Heard(rank / 2, event, table->now);
}

TEST_CASE("the grace is the longest that a living rank asks for, or what the person has said") {
  for (const bool given : {false, true}) {
    CAPTURE(given);
    DriverTable table({.grace_s = 5, .grace_is_given = given});
    table.Start();
    AskGrace(&table, 0, 600);
    AskGrace(&table, 0, 30);  // the newest word counts
    AskGrace(&table, 1, 2);
    AskGrace(&table, 2, 60);
    AskGrace(&table, 7, 9000);  // nobody
    table.Exit(2);
    table.state.Signalled(SIGTERM, 2);
    CHECK(GraceOf(&table) == (given ? 5 : 30));
    CHECK(table.state.deadline() <= 2.3);
    table.state.Tick(2.3);
    CHECK(table.state.deadline() == Approx(2 + (given ? 5 : 30) + 3));
    // The rank that asked for it dies; the others keep what they have been given.
    v1::MemberDied died;
    died.set_member(MemberOf(0));
    table.Died(died);
    table.Exit(0, {.signal = SIGTERM, .left = false});
    CHECK(GraceOf(&table) == (given ? 5 : 30));
  }
}

TEST_CASE(
    "what ranks have asked for ends with hvdrun's own processes, what the person said does not") {
  for (const bool given : {false, true}) {
    CAPTURE(given);
    DriverTable table({.grace_s = 5, .grace_is_given = given});
    table.Start();
    AskGrace(&table, 0, 3600);
    table.state.Signalled(SIGTERM, 2);
    CHECK(GraceOf(&table) == (given ? 5 : 3600));
    table.state.ProcessLost(Ending::kHungUp, "the terminal is gone", 3);
    CHECK(GraceOf(&table) == -1);
    table.state.ProcessLost(Ending::kConsoleLost, "hvdrun's console process died", 4);
    CHECK(GraceOf(&table) == (given ? -1 : 5));
    table.state.Tick(4);
    CHECK(table.state.deadline() == Approx(given ? 2 + 5 + 3 : 4 + 5 + 3));
    CHECK(table.Judged().exit_code == 143);
  }
}

TEST_CASE("a job that fails is not asked to agree on anything") {
  DriverTable table;
  table.Start();
  table.Exit(1, {.code = 3, .left = false});
  CHECK(table.Wants() == "abort stop");
  table.state.Signalled(SIGTERM, 2);
  CHECK(table.Wants() == "");
}

}  // namespace
}  // namespace hvd::cli
