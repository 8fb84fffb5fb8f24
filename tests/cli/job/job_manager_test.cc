// SPDX-License-Identifier: Apache-2.0
// A manager ends the job: it signals all of its processes at once, and says so by its agent.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/job/driver_table.h"

namespace hvd {
namespace {

constexpr char kHvddEnded[] = "hvdd got signal 15 (Terminated)";

JobPolicy InSlurm() {
  JobPolicy policy;
  policy.manager = "Slurm job 7";
  return policy;
}

TEST_CASE("TERM names the manager whose job this is") {
  DriverTable table(InSlurm());
  table.Start();
  table.state.Signalled(SIGTERM, 2);
  CHECK(table.Judged().exit_code == 143);
  CHECK(table.state.facts().ending_text ==
        "stopped by SIGTERM, which Slurm job 7 gets when it is cancelled or out of time");
  table.state.ManagerStops("Slurm: JOB 7 ON a CANCELLED AT noon", 2.1);
  CHECK(table.state.facts().ending_text == "stopped by Slurm: JOB 7 ON a CANCELLED AT noon");
  CHECK(table.Judged().exit_code == 143);
}

TEST_CASE("what a manager's TERM does to hosts and ranks before hvdrun has its own is no fault") {
  DriverTable table(InSlurm());
  table.Start();
  SECTION("a host") { table.state.HostLost(1, kHvddEnded, 2); }
  SECTION("a rank") { table.Exit(0, {.signal = SIGTERM, .left = false}); }
  SECTION("a rank that says so itself") { table.Exit(0, {.code = 143, .left = false}); }
  CHECK(table.Judged().kind != Verdict::kEnding);
  table.state.Signalled(SIGTERM, 2.1);
  CHECK(table.Judged().exit_code == 143);
  table.state.ManagerStops("Slurm: STEP 7.0 ON b CANCELLED AT noon", 2.2);
  CHECK(table.Judged().kind == Verdict::kEnding);
  CHECK(table.Judged().exit_code == 143);
}

TEST_CASE("a failure that came before a manager's TERM stays the reason") {
  DriverTable table(InSlurm());
  table.Start();
  SECTION("of a rank") {
    table.Exit(1, {.code = 3, .left = false});
    table.state.Signalled(SIGTERM, 2);
    CHECK(table.Judged().kind == Verdict::kRank);
    CHECK(table.Judged().exit_code == 3);
  }
  SECTION("of a rank that somebody has ended long before") {
    table.Exit(1, {.signal = SIGTERM, .left = false});
    table.state.Signalled(SIGTERM, 9);
    CHECK(table.Judged().kind == Verdict::kRank);
  }
  SECTION("of a host") {
    table.state.HostLost(1, "no sign of life for 10.0 s", 2);
    table.state.Signalled(SIGTERM, 2.1);
    CHECK(table.Judged().kind == Verdict::kHost);
  }
}

}  // namespace
}  // namespace hvd
