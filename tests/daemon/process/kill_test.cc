// SPDX-License-Identifier: Apache-2.0
// Whatever dies, nothing is left: at every containment level that works here, also for an ordinary
// user. A tree of every kind that gets away from simpler means runs in each rank.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>

#include "daemon/processes/process_state.h"
#include "tests/daemon/process/hvdd_fixture.h"

namespace hvd::daemon {
namespace {

using Kind = v1::Event;

// TERM-proof; a same-group child, a setsid child, a double-forked one, one that respawns itself.
const char kTree[] =
    "trap '' TERM HUP INT; sleep 1000 & "
    "setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & "
    "( ( setsid sleep 1000 & ) & ) ; "
    "setsid sh -c 'while :; do sleep 0.02; done' & "
    "echo ready; wait; wait; wait; wait; while :; do sleep 1000; done";
constexpr size_t kTreeSize = 6;

struct Case {
  std::string level;
  bool ordinary_user;
};

std::vector<Case> Cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (const bool ordinary : {false, true}) {
      if (ordinary && geteuid() != 0) continue;
      for (const std::string& level : WorkingLevels(ordinary)) all.push_back({level, ordinary});
    }
    return all;
  }();
  return cases;
}

HvddOptions OptionsOf(const Case& each) {
  HvddOptions options;
  options.containment = each.level;
  options.ordinary_user = each.ordinary_user;
  return options;
}

void StartTree(Hvdd* hvdd, double grace = 0.3) {
  HvddLaunch launch = hvdd->MakeLaunch(2, {"sh", "-c", kTree});
  launch.prepare.set_grace_s(grace);
  hvdd->Launch(launch);
  REQUIRE(hvdd->AwaitJobProcesses(2 * kTreeSize, 5));
}

// Directories that containment or the way back could have left.
int Traces() {
  int traces = 0;
  for (const char* base : {"/tmp", "/dev/shm", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(base, missing)) {
      const std::string name = entry.path().filename().string();
      traces += name.rfind("hvd-", 0) == 0 && name.rfind("hvd-test", 0) != 0;
    }
  }
  return traces;
}

TEST_CASE("the strongest level works for this user, and its name is told") {
  REQUIRE(!Cases().empty());
  for (const Case& each : Cases())
    WARN("level " << each.level << (each.ordinary_user ? ", ordinary user" : ""));
}

TEST_CASE("stop: asked, waited for, killed, and nothing left") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd);
    hvdd.Stop();
    const auto stopped = hvdd.Await(Kind::kStopped, 1, 1.3);
    REQUIRE(stopped.has_value());
    CHECK(stopped->stopped().survivors() == 0);
    CHECK(hvdd.JobProcesses().empty());
    CHECK(hvdd.Count(Kind::kRankExited) == 2);
  }
}

TEST_CASE("stop with kill skips the grace") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd, 100);
    hvdd.Stop(true);
    CHECK(hvdd.Await(Kind::kStopped, 1, 1).has_value());
    CHECK(hvdd.JobProcesses().empty());
  }
}

TEST_CASE("a cooperative worker gets TERM, its leftovers too, and the stop is quick") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    HvddLaunch launch = hvdd.MakeLaunch(1, {"sh", "-c",
                                            "setsid sleep 1000 & trap 'echo saved; exit 0' TERM; "
                                            "echo ready; while :; do sleep 0.02; done"});
    launch.prepare.set_grace_s(100);
    hvdd.Launch(launch);
    REQUIRE(Eventually(5, [&] { return hvdd.Output(0) == "ready\n"; }));
    hvdd.Stop();
    CHECK(hvdd.Await(Kind::kStopped, 1, 3).has_value());
    CHECK(hvdd.AwaitOutput(0) == "ready\nsaved\n");
    CHECK(hvdd.JobProcesses().empty());
  }
}

TEST_CASE("a stopped worker is woken to be asked") {
  Hvdd hvdd;
  HvddLaunch launch =
      hvdd.MakeLaunch(1, {"sh", "-c", "trap 'exit 9' TERM; kill -STOP $$; sleep 100"});
  launch.prepare.set_grace_s(100);
  hvdd.Launch(launch);
  const auto started = hvdd.Await(Kind::kRankStarted);
  REQUIRE(started.has_value());
  const int worker = static_cast<int>(started->rank_started().pid());
  REQUIRE(Eventually(5, [&] { return StateOf(worker).stopped(); }));
  hvdd.Stop();
  CHECK(hvdd.Await(Kind::kStopped, 1, 5).has_value());
}

TEST_CASE("the driver goes away: grace, then nothing") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    const int traces = Traces();
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd);
    const int shim = hvdd.shim_pid();
    hvdd.Close();
    CHECK(hvdd.AwaitExitOfDaemon(1.5));
    CHECK(kill(shim, 0) != 0);  // gone and reaped, not left to init
    CHECK(hvdd.AwaitNothingLeft(0.2));
    CHECK(Eventually(1, [&] { return Traces() <= traces; }));
  }
}

TEST_CASE("kill -9 of hvdd") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    const int traces = Traces();
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd, 100);
    kill(hvdd.pid(), SIGKILL);
    CHECK(hvdd.AwaitNothingLeft(2));
    CHECK(Eventually(1, [&] { return Traces() <= traces; }));
  }
}

TEST_CASE("kill -9 of the shim") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd, 100);
    kill(hvdd.shim_pid(), SIGKILL);
    CHECK(hvdd.AwaitNothingLeft(2));
    const auto failed = hvdd.Await(Kind::kLaunchFailed);
    REQUIRE(failed.has_value());
    CHECK(failed->launch_failed().message().find("killed by signal 9") != std::string::npos);
    const auto stopped = hvdd.Await(Kind::kStopped);
    REQUIRE(stopped.has_value());
    CHECK(stopped->stopped().survivors() == 0);
    CHECK(hvdd.Count(Kind::kRankExited) == 2);
    CHECK(hvdd.Await(Kind::kRankExited)->rank_exited().after_abort());  // the shim's fault, not its
  }
}

TEST_CASE("kill -9 of hvdd and shim at once leaves nothing where the kernel holds the job") {
  for (const Case& each : Cases()) {
    if (each.level != "namespace") continue;
    CAPTURE(each.ordinary_user);
    for (int round = 0; round < 3; ++round) {
      Hvdd hvdd(OptionsOf(each));
      StartTree(&hvdd, 100);
      const int shim = hvdd.shim_pid();
      kill(shim, SIGSTOP);  // so that it cannot act on the other's end
      kill(hvdd.pid(), SIGKILL);
      kill(shim, SIGKILL);
      CHECK(hvdd.AwaitNothingLeft(2));
    }
  }
}

// ---- who is stopped (SIGSTOP), and can neither hear nor end anything ----

TEST_CASE("a stopped shim is continued by whatever it is asked") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd);
    kill(hvdd.shim_pid(), SIGSTOP);
    hvdd.Stop();
    const auto stopped = hvdd.Await(Kind::kStopped, 1, 1.3);
    REQUIRE(stopped.has_value());
    CHECK(stopped->stopped().survivors() == 0);
    CHECK(hvdd.JobProcesses().empty());
    CHECK(hvdd.Count(Kind::kRankExited) == 2);
    CHECK(hvdd.Count(Kind::kLaunchFailed) == 0);
  }
}

TEST_CASE("the driver goes away while the shim is stopped") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd);
    const int shim = hvdd.shim_pid();
    kill(shim, SIGSTOP);
    hvdd.Close();
    CHECK(hvdd.AwaitExitOfDaemon(1.5));
    CHECK(kill(shim, 0) != 0);
    CHECK(hvdd.AwaitNothingLeft(0.2));
  }
}

TEST_CASE("kill -9 of hvdd while its shim is stopped") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    StartTree(&hvdd, 100);
    kill(hvdd.shim_pid(), SIGSTOP);
    kill(hvdd.pid(), SIGKILL);
    CHECK(hvdd.AwaitNothingLeft(2));
  }
}

// A debugger's hold is one that SIGCONT does not loosen.
TEST_CASE("a shim that does not answer is killed with all that it holds") {
  for (const Case& each : Cases()) {
    for (const bool many_asks : {false, true}) {
      CAPTURE(each.level, each.ordinary_user, many_asks);
      Hvdd hvdd(OptionsOf(each));
      StartTree(&hvdd);
      const int shim = hvdd.shim_pid();
      REQUIRE(ptrace(PTRACE_SEIZE, shim, nullptr, nullptr) == 0);
      REQUIRE(ptrace(PTRACE_INTERRUPT, shim, nullptr, nullptr) == 0);
      v1::Command command;
      command.mutable_signal()->set_signal(SIGWINCH);
      for (int i = 0; many_asks && i < 1000; ++i) hvdd.Send(command);
      hvdd.Stop();
      const auto stopped = hvdd.Await(Kind::kStopped, 1, 4);
      REQUIRE(stopped.has_value());
      CHECK(stopped->stopped().survivors() == 0);
      CHECK(hvdd.JobProcesses().empty());
      CHECK(hvdd.Count(Kind::kRankExited) == 2);
      waitpid(shim, nullptr, __WALL);
    }
  }
}

HvddLaunch LaunchWithLease(const Hvdd& hvdd, double lease, std::vector<std::string> argv) {
  HvddLaunch launch = hvdd.MakeLaunch(1, std::move(argv));
  launch.prepare.set_lease_s(lease);
  launch.prepare.set_grace_s(0.3);
  return launch;
}

TEST_CASE("hvdd and shim are stopped: the shim ends all at the end of its lease, and hvdd goes") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    hvdd.Launch(LaunchWithLease(hvdd, 0.6, {"sh", "-c", kTree}));
    REQUIRE(hvdd.AwaitJobProcesses(kTreeSize, 5));
    kill(hvdd.pid(), SIGSTOP);
    kill(hvdd.shim_pid(), SIGSTOP);
    CHECK(hvdd.AwaitNothingLeft(2));
    hvdd.Close();
    CHECK(hvdd.AwaitExitOfDaemon(3));
  }
}

TEST_CASE("hvdd is stopped and its driver goes away: both end") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    hvdd.Launch(LaunchWithLease(hvdd, 0.6, {"sh", "-c", kTree}));
    REQUIRE(hvdd.AwaitJobProcesses(kTreeSize, 5));
    kill(hvdd.pid(), SIGSTOP);
    hvdd.Close();
    CHECK(hvdd.AwaitNothingLeft(2));
    CHECK(hvdd.AwaitExitOfDaemon(3));
  }
}

TEST_CASE("kill -9 of the shim while hvdd is stopped") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    hvdd.Launch(LaunchWithLease(hvdd, 0.6, {"sh", "-c", kTree}));
    REQUIRE(hvdd.AwaitJobProcesses(kTreeSize, 5));
    const int shim = hvdd.shim_pid();
    kill(hvdd.pid(), SIGSTOP);
    kill(shim, SIGKILL);
    CHECK(hvdd.AwaitNothingLeft(3));
  }
}

TEST_CASE("a rank's end is told although the shim was stopped before it") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    hvdd.Launch(LaunchWithLease(hvdd, 0.6, {"sleep", "1000"}));
    REQUIRE(hvdd.Await(Kind::kRankStarted).has_value());
    kill(hvdd.shim_pid(), SIGSTOP);
    for (const int rank : hvdd.JobProcesses()) kill(rank, SIGUSR1);
    const auto exited = hvdd.AwaitExit(0, 5);
    REQUIRE(exited.has_value());
    CHECK(exited->signal() == SIGUSR1);
  }
}

TEST_CASE("a driver that falls silent loses its lease") {
  HvddOptions options;
  options.beats = false;
  Hvdd hvdd(options);
  HvddLaunch launch =
      hvdd.MakeLaunch(1, {"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.02; done"});
  launch.prepare.set_lease_s(0.5);
  const auto start = std::chrono::steady_clock::now();
  hvdd.Launch(launch);
  REQUIRE(hvdd.AwaitJobProcesses(1, 5));
  CHECK(hvdd.AwaitNothingLeft(2));
  CHECK(std::chrono::steady_clock::now() - start > std::chrono::milliseconds(450));
  CHECK(hvdd.AwaitExitOfDaemon(2));
}

TEST_CASE("beats that are echoed keep the lease") {
  Hvdd hvdd;
  HvddLaunch launch = hvdd.MakeLaunch(1, {"sleep", "1.2"});
  launch.prepare.set_lease_s(0.6);
  hvdd.Launch(launch);
  const auto exited = hvdd.AwaitExit(0, 5);
  REQUIRE(exited.has_value());
  CHECK(exited->exit_code() == 0);
}

TEST_CASE("a paused hvdd cannot keep workers beyond the lease") {
  for (const Case& each : Cases()) {
    CAPTURE(each.level, each.ordinary_user);
    Hvdd hvdd(OptionsOf(each));
    HvddLaunch launch = hvdd.MakeLaunch(1, {"sh", "-c", kTree});
    launch.prepare.set_lease_s(0.6);
    hvdd.Launch(launch);
    REQUIRE(hvdd.AwaitJobProcesses(kTreeSize, 5));
    kill(hvdd.pid(), SIGSTOP);
    CHECK(hvdd.AwaitNothingLeft(2));
    kill(hvdd.pid(), SIGCONT);
    const auto failed = hvdd.Await(Kind::kLaunchFailed);
    REQUIRE(failed.has_value());
    CHECK(failed->launch_failed().message().find("hvdd was paused") != std::string::npos);
  }
}

TEST_CASE("TERM to hvdd ends the job") {
  Hvdd hvdd;
  StartTree(&hvdd);
  kill(hvdd.pid(), SIGTERM);
  const auto told = hvdd.Await(v1::Event::kLaunchFailed);
  REQUIRE(told.has_value());
  CHECK(told->launch_failed().message() == "hvdd got signal 15 (Terminated)");
  // First of all, so that nobody takes a rank's end for the reason.
  const auto ended = hvdd.Await(v1::Event::kRankExited);
  REQUIRE(ended.has_value());
  CHECK(told->at_us() <= ended->at_us());
  REQUIRE(hvdd.Await(v1::Event::kStopped).has_value());
  CHECK(hvdd.AwaitExitOfDaemon(2));
  CHECK(hvdd.AwaitNothingLeft(0.2));
}

TEST_CASE("workers see a /proc of their own and their host's pids are told") {
  HvddOptions options;
  options.containment = "namespace";
  Hvdd hvdd(options);
  hvdd.Launch(
      1, {"sh", "-c", "cat /proc/1/comm; readlink /proc/self >/dev/null && echo ok; sleep 100"});
  const auto started = hvdd.Await(Kind::kRankStarted);
  if (!started.has_value()) {
    WARN("skipped: no PID namespaces here");
    return;
  }
  REQUIRE(Eventually(5, [&] { return hvdd.Output(0) == "hvd-shim\nok\n"; }));
  const std::vector<int> processes = hvdd.JobProcesses();
  CHECK(std::count(processes.begin(), processes.end(),
                   static_cast<int>(started->rank_started().pid())) == 1);
}

}  // namespace
}  // namespace hvd::daemon
