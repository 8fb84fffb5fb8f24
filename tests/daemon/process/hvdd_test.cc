// SPDX-License-Identifier: Apache-2.0
// A real hvdd, launched and talked to as hvdrun's driver does.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "proto/hello.h"
#include "tests/daemon/process/hvdd_fixture.h"
#include "tests/support/patience.h"

namespace hvd::daemon {
namespace {

using Kind = v1::Event;

std::string Read(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("hello, a launch of true, a quiet end") {
  Hvdd hvdd;
  // And which host this is.
  CHECK(hvdd.hello().rfind("MARK " + std::to_string(kLinkAProtocol) + " " HVD_VERSION " ", 0) == 0);
  hvdd.Launch(2, {"true"});
  const auto launched = hvdd.Await(Kind::kLaunched);
  REQUIRE(launched.has_value());
  CHECK(launched->launched().pid() == static_cast<uint32_t>(hvdd.pid()));
  CHECK(launched->launched().containment() != v1::CONTAINMENT_AUTO);
  for (int rank : {0, 1}) {
    const auto exited = hvdd.AwaitExit(rank);
    REQUIRE(exited.has_value());
    CHECK(exited->exit_code() == 0);
    CHECK(exited->signal() == 0);
    CHECK(exited->pid() > 1);
    CHECK(!exited->joined());
    CHECK(!exited->after_abort());
  }
  CHECK(hvdd.Count(Kind::kRankStarted) == 2);
  hvdd.Stop();
  const auto stopped = hvdd.Await(Kind::kStopped);
  REQUIRE(stopped.has_value());
  CHECK(stopped->stopped().survivors() == 0);
  hvdd.Close();
  CHECK(hvdd.AwaitExitOfDaemon(2));
}

TEST_CASE("over two pipes, as sshd hands them out") {
  HvddOptions options;
  options.pipes = true;
  Hvdd hvdd(options);
  hvdd.Launch(1, {"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"});
  CHECK(hvdd.AwaitOutput(0) == std::string(1000000, 'x'));
  CHECK(hvdd.AwaitExit(0).has_value());
  hvdd.Close();
  CHECK(hvdd.AwaitExitOfDaemon(2));
}

TEST_CASE("exit codes, signals and last lines") {
  Hvdd hvdd;
  hvdd.Launch(2,
              {"sh", "-c", "echo out; echo bad >&2; test $HVD_RANK = 0 && exit 7; kill -SEGV $$"});
  const auto seven = hvdd.AwaitExit(0);
  REQUIRE(seven.has_value());
  CHECK(seven->exit_code() == 7);
  REQUIRE(seven->last_lines_size() == 1);
  CHECK(seven->last_lines(0) == "bad");
  const auto crash = hvdd.AwaitExit(1);
  REQUIRE(crash.has_value());
  CHECK(crash->signal() == SIGSEGV);
  CHECK(hvdd.AwaitOutput(1) == "out\n");
  CHECK(hvdd.AwaitOutput(1, true) == "bad\n");
}

TEST_CASE("a death is told before the end of the output that a child holds open") {
  Hvdd hvdd;
  hvdd.Launch(1, {"sh", "-c", "sleep 1000 & exit 7"});
  const auto exited = hvdd.Await(v1::Event::kRankExited);
  const auto died = hvdd.Await(v1::Event::kMemberDied);
  REQUIRE(exited.has_value());
  REQUIRE(died.has_value());
  CHECK(died->member_died().exit_code() == 7);
  CHECK(died->member_died().cause() == "rank 0 on host1 exited with code 7 before hvd's init");
  const uint64_t waited_us = exited->rank_exited().told_after_us();
  CHECK(waited_us > 0);
  CHECK(exited->at_us() - died->at_us() > waited_us / 2);
}

TEST_CASE("bytes that are no UTF-8 pass, down and up") {
  Hvdd hvdd;
  HvddLaunch launch =
      hvdd.MakeLaunch(1, {"sh", "-c", "printf \"$0$ODD\\n\" | tee /dev/stderr; exit 3", "\xff"});
  launch.prepare.mutable_program()->add_environment("ODD=\xe9t\xe9");
  hvdd.Launch(launch);
  const auto exited = hvdd.AwaitExit(0);
  REQUIRE(exited.has_value());
  CHECK(exited->exit_code() == 3);
  REQUIRE(exited->last_lines_size() == 1);
  CHECK(exited->last_lines(0) == "\xff\xe9t\xe9");
  CHECK(hvdd.AwaitOutput(0) == "\xff\xe9t\xe9\n");
}

TEST_CASE("commands that cannot run are told with the host, the name and the code") {
  Hvdd missing;
  missing.Launch(2, {"no-such-command"});
  const auto failed = missing.Await(Kind::kLaunchFailed);
  REQUIRE(failed.has_value());
  CHECK(failed->launch_failed().exit_code() == 127);
  CHECK(failed->launch_failed().message().find("host1: command 'no-such-command' not found") == 0);
  for (int rank : {0, 1}) CHECK(missing.AwaitExit(rank)->exit_code() == 127);
  CHECK(missing.Count(Kind::kLaunchFailed) == 1);
  CHECK(missing.Count(Kind::kRankStarted) == 0);

  Hvdd refused;
  refused.Launch(1, {"/etc/passwd"});
  CHECK(refused.Await(Kind::kLaunchFailed)->launch_failed().exit_code() == 126);

  Hvdd nowhere;
  HvddLaunch launch = nowhere.MakeLaunch(1, {"true"});
  launch.prepare.mutable_program()->set_directory("/no/such/directory");
  nowhere.Launch(launch);
  const auto lost = nowhere.Await(Kind::kLaunchFailed);
  REQUIRE(lost.has_value());
  CHECK(lost->launch_failed().exit_code() == 125);
  CHECK(lost->launch_failed().message().find("'/no/such/directory'") != std::string::npos);
}

TEST_CASE(
    "a worker finds its directory, umask, limits, environment, stdin and no more descriptors") {
  Hvdd hvdd;
  HvddLaunch launch = hvdd.MakeLaunch(
      1, {"sh", "-c",
          "pwd; umask; ulimit -n; echo $HVD_RANK/$WORLD_SIZE $FROM; readlink /proc/self/fd/0; "
          "trap; for f in /proc/self/fd/*; do echo ${f##*/}; done | tr '\\n' ' '"});
  launch.prepare.mutable_program()->set_directory("/usr");
  launch.prepare.mutable_program()->set_umask(027);
  launch.prepare.mutable_program()->add_environment("FROM=launcher");
  v1::Limit& files = *launch.prepare.mutable_program()->add_limits();
  files.set_resource(7);  // RLIMIT_NOFILE
  files.set_soft(333);
  files.set_hard(333);
  hvdd.Launch(launch);
  // 3 or so is the shell's own directory handle; 197 is the door.
  const std::string text = hvdd.AwaitOutput(0);
  INFO(text);
  CHECK(text.find("/usr\n0027\n333\n0/1 launcher\n/dev/null\n") == 0);
  CHECK(text.find("0 1 197 2 ") != std::string::npos);
}

TEST_CASE("output comes whole, and a flood delays no beat") {
  Hvdd hvdd;
  hvdd.Launch(2, {"sh", "-c", "seq 1 300000; seq 1 1000 >&2"});
  std::string numbers;
  for (int i = 1; i <= 300000; ++i) numbers += std::to_string(i) + "\n";
  for (int rank : {0, 1}) CHECK(hvdd.AwaitOutput(rank) == numbers);
  CHECK(hvdd.AwaitOutput(1, true).size() == 3893);
  CHECK(hvdd.longest_beat_gap() < Patient(1));
}

TEST_CASE("a stopped console holds the worker, not the beats nor the end") {
  Hvdd hvdd;
  hvdd.StopAcking();
  hvdd.Launch(1, {"sh", "-c", "yes | head -c 8000000; echo done >&2"});
  REQUIRE(hvdd.Await(Kind::kRankStarted).has_value());
  // Two beats at least pass while the worker's pipe is full.
  CHECK(!hvdd.AwaitExit(0, 0.7).has_value());
  CHECK(hvdd.longest_beat_gap() < Patient(0.6));
  hvdd.Stop(true);
  CHECK(hvdd.AwaitExit(0).has_value());
  CHECK(hvdd.Await(Kind::kStopped).has_value());
}

TEST_CASE("with files, everything is in them and a console that nobody reads may skip") {
  char name[] = "/tmp/hvd-test-XXXXXX";
  const std::string directory = mkdtemp(name);
  Hvdd hvdd;
  hvdd.StopAcking();
  HvddLaunch launch = hvdd.MakeLaunch(2, {"sh", "-c", "seq 1 1000000; echo bad >&2"});
  launch.prepare.set_output_directory(directory + "/logs");
  hvdd.Launch(launch);
  REQUIRE(hvdd.Await(Kind::kRankStarted, 2).has_value());
  // A file keeps no rank going while hvdrun has not said that nobody takes its output.
  CHECK(!hvdd.AwaitExit(0, 0.3).has_value());
  hvdd.SkipOutput();
  for (int rank : {0, 1}) REQUIRE(hvdd.AwaitExit(rank).has_value());
  hvdd.Stop();
  CHECK(hvdd.Await(Kind::kStopped).has_value());
  hvdd.Close();
  CHECK(hvdd.AwaitExitOfDaemon(5));
  std::string numbers;
  for (int i = 1; i <= 1000000; ++i) numbers += std::to_string(i) + "\n";
  // Its millions of bytes are nothing to print.
  const bool whole = Read(directory + "/logs/rank.0001/stdout") == numbers;
  CHECK(whole);
  CHECK(Read(directory + "/logs/rank.0000/stderr") == "bad\n");
  std::filesystem::remove_all(directory);
}

TEST_CASE("stdin goes to the chosen rank with its end; it is taken as fast as it is read") {
  Hvdd hvdd;
  HvddLaunch launch = hvdd.MakeLaunch(2, {"sh", "-c", "cat | wc -c"});
  launch.spawn.mutable_seats(1)->set_stdin(true);
  hvdd.Launch(launch);
  v1::Command command;
  command.mutable_stdin_chunk()->set_data(std::string(100000, 'x'));
  for (int i = 0; i < 5; ++i) hvdd.Send(command);
  command.mutable_stdin_chunk()->clear_data();
  command.mutable_stdin_chunk()->set_end(true);
  hvdd.Send(command);
  CHECK(hvdd.AwaitOutput(0) == "0\n");
  CHECK(hvdd.AwaitOutput(1) == "500000\n");
  const auto credit = [&hvdd] {
    uint64_t bytes = 0;
    for (int i = 1; i <= hvdd.Count(Kind::kStdinCredit); ++i) {
      bytes += hvdd.Await(Kind::kStdinCredit, i)->stdin_credit().bytes();
    }
    return bytes;
  };
  CHECK(Eventually(5, [&] { return credit() == 500000; }));
}

TEST_CASE("signals reach the ranks") {
  Hvdd hvdd;
  hvdd.Launch(
      2, {"sh", "-c", "trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.05; done"});
  for (int rank : {0, 1}) {
    REQUIRE(Eventually(5, [&] { return hvdd.Output(rank) == "ready\n"; }));
  }
  v1::Command command;
  command.mutable_signal()->set_signal(SIGUSR1);
  hvdd.Send(command);
  for (int rank : {0, 1}) CHECK(hvdd.AwaitExit(rank)->exit_code() == 3);
  CHECK(hvdd.AwaitOutput(0) == "ready\ngot\n");
}

TEST_CASE("USR1 and USR2 at hvdd itself are for its ranks") {
  Hvdd hvdd;
  hvdd.Launch(2, {"sh", "-c",
                  "trap 'echo one' USR1; trap 'echo two; exit 3' USR2; echo ready; "
                  "while :; do sleep 0.05; done"});
  for (int rank : {0, 1}) {
    REQUIRE(Eventually(5, [&] { return hvdd.Output(rank) == "ready\n"; }));
  }
  kill(hvdd.pid(), SIGUSR1);
  for (int rank : {0, 1}) {
    REQUIRE(Eventually(5, [&] { return hvdd.Output(rank) == "ready\none\n"; }));
  }
  kill(hvdd.pid(), SIGUSR2);
  for (int rank : {0, 1}) CHECK(hvdd.AwaitExit(rank)->exit_code() == 3);
}

// Returns what a process holds open, by descriptor: "socket:[123]".
std::map<int, std::string> Open(int pid) {
  std::map<int, std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    names[std::stoi(entry.path().filename().string())] =
        std::filesystem::read_symlink(entry.path(), gone).string();
  }
  return names;
}

TEST_CASE("neither the shim nor a worker holds hvdd's sockets or its stderr") {
  for (const bool pipes : {false, true}) {
    HvddOptions options;
    options.pipes = pipes;
    Hvdd hvdd(options);
    hvdd.Launch(2, {"sleep", "100"});
    REQUIRE(hvdd.Await(Kind::kRankStarted, 2).has_value());
    std::map<int, std::string> of_daemon = Open(hvdd.pid());
    CHECK(of_daemon[0] == "/dev/null");
    CHECK(of_daemon[1] == "/dev/null");
    std::set<std::string> private_names;
    for (const auto& [fd, name] : of_daemon) {
      if (fd == 2 || name.rfind("socket:", 0) == 0) private_names.insert(name);
    }
    CHECK(private_names.size() > 4);
    std::vector<int> others = hvdd.JobProcesses();
    CHECK(others.size() == 2);
    others.push_back(hvdd.shim_pid());
    REQUIRE(others.back() > 0);
    for (const int pid : others) {
      for (const auto& [fd, name] : Open(pid)) {
        INFO("descriptor " << fd << ", " << name << ", of process " << pid);
        CHECK(private_names.count(name) == 0);
      }
    }
    // A worker has its three and the door, once it is loaded.
    CHECK(Eventually(5, [&] { return Open(others[0]).size() == 4; }));
  }
}

TEST_CASE("an impossible containment is refused with its reason") {
  // A level that fails everywhere cannot be had, so the check is on one that fails for this user.
  HvddOptions options;
  options.containment = "cgroup";
  options.ordinary_user = geteuid() == 0;
  Hvdd hvdd(options);
  hvdd.Launch(1, {"true"});
  const auto failed = hvdd.Await(Kind::kLaunchFailed, 1, 2);
  if (!failed.has_value()) {
    WARN("skipped: an ordinary user may make cgroups here");
    return;
  }
  CHECK(failed->launch_failed().exit_code() == 125);
  CHECK(failed->launch_failed().message().find("cgroup") != std::string::npos);
}

TEST_CASE("a second launch is refused") {
  Hvdd hvdd;
  hvdd.Launch(1, {"sleep", "100"});
  REQUIRE(hvdd.Await(Kind::kRankStarted).has_value());
  hvdd.Launch(1, {"true"});
  const auto failed = hvdd.Await(Kind::kLaunchFailed);
  REQUIRE(failed.has_value());
  CHECK(failed->launch_failed().exit_code() == 125);
  CHECK(hvdd.JobProcesses().size() == 1);
}

TEST_CASE("a grandchild that holds the pipes delays a rank's end by about a second only") {
  Hvdd hvdd;
  hvdd.Launch(1, {"sh", "-c", "sleep 100 & echo bye"});
  const auto exited = hvdd.AwaitExit(0, 3);
  REQUIRE(exited.has_value());
  CHECK(exited->exit_code() == 0);
  CHECK(exited->told_after_us() > 900000);
  CHECK(hvdd.AwaitOutput(0) == "bye\n");
  hvdd.Stop();
  CHECK(hvdd.Await(Kind::kStopped, 1, 3).has_value());
  CHECK(hvdd.JobProcesses().empty());
}

}  // namespace
}  // namespace hvd::daemon
