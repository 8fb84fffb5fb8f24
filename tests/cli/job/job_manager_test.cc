// SPDX-License-Identifier: Apache-2.0
// A manager ends the job: it signals all of its processes at once, and says so by its agent.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/cli/job/driver_table.h"

namespace hvd::cli {
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

TEST_CASE("a manager's notice ends the job once, whatever it has done to the ranks") {
  JobPolicy policy;
  policy.manager = "Grid Engine job 3";
  policy.end_notice = SIGUSR2;
  DriverTable table(policy);
  table.Start();
  SECTION("before them") {}
  SECTION("after a rank died of it") { table.Exit(0, {.signal = SIGUSR2, .left = false}); }
  SECTION("after a shell whose rank died of it") {
    table.Exit(0, {.code = 128 + SIGUSR2, .left = false});
  }
  table.state.Signalled(SIGUSR2, 2);
  const double until = table.state.deadline();
  table.state.Signalled(SIGUSR2, 2.1);
  CHECK(table.state.deadline() == until);  // a second one hurries nothing
  CHECK(table.Judged().kind == Verdict::kEnding);
  CHECK(table.Judged().exit_code == 143);
  CHECK(table.state.facts().ending_text ==
        "stopped by SIGUSR2, which Grid Engine job 3 gets before it is killed (qdel, or out of "
        "time)");
}

TEST_CASE("a rank that dies of a manager's notice tells of it") {
  JobPolicy policy;
  policy.manager = "Grid Engine job 3";
  policy.end_notice = SIGUSR2;
  DriverTable table(policy);
  table.Start();
  SECTION("as its host has it before ours") {
    table.Exit(2, {.signal = SIGUSR2, .left = false});
    CHECK(table.Judged().exit_code == 143);
    CHECK(table.state.facts().ending_text.find("which Grid Engine job 3 gets before") !=
          std::string::npos);
  }
  SECTION("but not of a failure that came before") {
    table.Exit(1, {.code = 3, .left = false});
    table.Exit(2, {.signal = SIGUSR2, .left = false});
    CHECK(table.Judged().kind == Verdict::kRank);
  }
}

TEST_CASE("without such a notice USR2 is for the ranks, and whoever dies of it fails") {
  DriverTable table(InSlurm());
  table.Start();
  table.state.Signalled(SIGUSR2, 2);
  CHECK(table.state.facts().passed_on.count(SIGUSR2) == 1);
  table.Exit(0, {.signal = SIGUSR2, .left = false});
  table.state.Signalled(SIGTERM, 2.1);
  CHECK(table.Judged().kind == Verdict::kRank);
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
}  // namespace hvd::cli
