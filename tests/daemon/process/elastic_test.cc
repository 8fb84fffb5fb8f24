// SPDX-License-Identifier: Apache-2.0
// Members of an elastic job come and go on one host, whose hvdd is a real one. Workers know their
// member number by HVD_MEMBER_MARK.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/shim/process_tree.h"
#include "tests/daemon/process/hvdd_fixture.h"

namespace hvd::daemon {
namespace {

using Kind = v1::Event;

struct Member {
  uint64_t number;
  uint32_t slot;
  uint32_t share;
};

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// One elastic job, alone on its host. `world` is who is there, in the order of ranks.
class ElasticHost {
 public:
  explicit ElasticHost(std::string script, const HvddOptions& options = {}) : hvdd_(options) {
    launch_ = hvdd_.MakeLaunch(2, {"sh", "-c", std::move(script)});
    launch_.prepare.set_elastic(true);
  }

  Hvdd& hvdd() { return hvdd_; }
  v1::PrepareHost* prepare() { return &launch_.prepare; }

  void Prepare() {
    v1::Command command;
    *command.mutable_prepare_host() = launch_.prepare;
    hvdd_.Send(command);
  }

  // `epoch` is the one that they may be in.
  void Spawn(const std::vector<Member>& members, const std::vector<Member>& world,
             uint64_t epoch = 1, uint32_t shares = 0) {
    v1::Command command;
    v1::SpawnSlots& spawn = *command.mutable_spawn_slots();
    for (const Member& member : members) Set(member, spawn.add_seats());
    spawn.set_shares(shares);
    spawn.mutable_expected()->set_epoch(epoch);
    v1::EpochHost& host = *spawn.mutable_expected()->add_hosts();
    host.set_name("host1");
    for (const Member& member : world) Set(member, host.add_members());
    hvdd_.Send(command);
  }

  // As the host sees it; it has started.
  int PidOf(uint64_t member) {
    for (int nth = 1;; ++nth) {
      const auto started = hvdd_.Await(Kind::kRankStarted, nth);
      REQUIRE(started.has_value());
      if (started->rank_started().member() == member) return started->rank_started().pid();
    }
  }
  v1::MemberDied AwaitDeath(uint64_t member) {
    for (int nth = 1;; ++nth) {
      const auto died = hvdd_.Await(Kind::kMemberDied, nth);
      REQUIRE(died.has_value());
      if (died->member_died().member() == member) return died->member_died();
    }
  }
  v1::RankExited AwaitEnd(uint64_t member) {
    const auto exited = hvdd_.AwaitExit(static_cast<int>(member) - 1);
    REQUIRE(exited.has_value());
    return *exited;
  }
  std::string Output(uint64_t member) { return hvdd_.Output(static_cast<int>(member) - 1); }
  void AwaitText(uint64_t member, const std::string& text) {
    REQUIRE(Eventually(10, [&] { return Output(member) == text; }));
  }
  void Kill(uint64_t member) { REQUIRE(kill(PidOf(member), SIGKILL) == 0); }
  // Ends it as a driver does that lost it: its slot is free then.
  void KillWhole(uint64_t member) {
    Kill(member);
    CHECK(AwaitDeath(member).signal() == SIGKILL);
    CHECK(AwaitEnd(member).signal() == SIGKILL);
  }
  void StopClean(int ends) {
    hvdd_.Stop(true);
    const auto stopped = hvdd_.Await(Kind::kStopped);
    REQUIRE(stopped.has_value());
    CHECK(stopped->stopped().survivors() == 0);
    CHECK(hvdd_.Count(Kind::kRankExited) == ends);
    CHECK(hvdd_.JobProcesses().empty());
  }

  // Living processes with this member's mark. One in the midst of an exec shows none.
  size_t Carriers(uint64_t member) const {
    const std::string mark =
        '\0' + ("HVD_MEMBER_MARK=" + hvdd_.job() + "." + std::to_string(member)) + '\0';
    size_t carriers = 0;
    for (const int pid : hvdd_.JobProcesses()) {
      const std::string environment = '\0' + Read("/proc/" + std::to_string(pid) + "/environ");
      carriers += environment.find(mark) != std::string::npos;
    }
    return carriers;
  }

 private:
  static void Set(const Member& member, v1::Seat* seat) {
    seat->set_member(member.number);
    seat->set_slot(member.slot);
    seat->set_share(member.share);
  }

  Hvdd hvdd_;
  HvddLaunch launch_;
};

const char kSayWho[] =
    "echo \"member ${HVD_MEMBER_MARK##*.} rank $HVD_RANK of $HVD_SIZE\"; exec sleep 1000";

TEST_CASE("others come for a dead member, to a new slot and to one that is used again") {
  ElasticHost host(kSayWho);
  host.Prepare();
  host.Spawn({{1, 0, 0}, {2, 1, 1}}, {{1, 0, 0}, {2, 1, 1}});
  host.AwaitText(1, "member 1 rank 0 of 2\n");
  host.AwaitText(2, "member 2 rank 1 of 2\n");
  host.KillWhole(2);
  host.Spawn({{3, 77, 1}}, {{1, 0, 0}, {3, 77, 1}});
  host.AwaitText(3, "member 3 rank 1 of 2\n");
  host.KillWhole(3);
  host.Spawn({{4, 1, 1}}, {{4, 1, 1}, {1, 0, 0}});
  host.AwaitText(4, "member 4 rank 0 of 2\n");
  CHECK(host.hvdd().AwaitOutput(1) == "member 2 rank 1 of 2\n");
  CHECK(host.hvdd().AwaitOutput(2) == "member 3 rank 1 of 2\n");
  CHECK(host.hvdd().Count(Kind::kLaunched) == 1);
  CHECK(Eventually(10, [&] { return host.Carriers(1) == 1; }));
  host.KillWhole(4);
  CHECK(host.hvdd().AwaitOutput(3) == "member 4 rank 0 of 2\n");
  host.StopClean(4);
}

TEST_CASE("a stopped console hears of each worker of a slot what that one said") {
  ElasticHost host("echo \"${HVD_MEMBER_MARK##*.}\"; head -c 600000 /dev/zero; exec sleep 1000");
  host.hvdd().StopAcking();
  host.Prepare();
  host.Spawn({{1, 0, 0}}, {{1, 0, 0}});
  host.PidOf(1);
  for (uint64_t member = 2; member < 5; ++member) {
    host.KillWhole(member - 1);
    host.Spawn({{member, 0, 0}}, {{member, 0, 0}});
    host.PidOf(member);
  }
  for (uint64_t member = 1; member < 5; ++member) {
    const std::string said = host.Output(member);
    if (!said.empty()) CHECK(said.substr(0, 2) == std::to_string(member) + "\n");
  }
  host.StopClean(4);
}

TEST_CASE("a command that is gone ends one member, and its slot is free again") {
  char directory[] = "/tmp/hvd-test-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::string program = std::string(directory) + "/program";
  const auto write = [&program] {
    std::ofstream(program) << "#!/bin/sh\necho ready\nexec sleep 1000\n";
    chmod(program.c_str(), 0755);
  };
  write();
  ElasticHost host("");
  host.prepare()->mutable_program()->clear_argv();
  host.prepare()->mutable_program()->add_argv(program);
  host.Prepare();
  const std::vector<Member> world = {{1, 0, 0}, {2, 1, 1}};
  host.Spawn({world[0]}, world);
  host.AwaitText(1, "ready\n");  // its shell has opened it
  unlink(program.c_str());
  host.Spawn({world[1]}, world);
  CHECK(host.AwaitDeath(2).exit_code() == 127);
  CHECK(host.AwaitEnd(2).exec_error().find("host1: ") == 0);
  write();
  host.Spawn({{3, 1, 1}}, {{1, 0, 0}, {3, 1, 1}});
  host.PidOf(3);
  CHECK(host.hvdd().Count(Kind::kLaunchFailed) == 0);
  CHECK(Eventually(10, [&] { return host.Carriers(1) == 1; }));
  host.StopClean(3);
  std::filesystem::remove_all(directory);
}

TEST_CASE("a seat that nobody can have is its member's end, not that of who sits there") {
  ElasticHost host(kSayWho);
  host.Prepare();
  host.Spawn({{1, 0, 0}}, {{1, 0, 0}});
  host.PidOf(1);
  const std::vector<Member> wrong = {{2, 0, 0}, {3, 300, 0}, {4, 5, 9}};
  for (const Member& member : wrong) {
    host.Spawn({member}, {{1, member.slot == 0 ? 1u : 0u, 0}, member});
    CHECK(host.AwaitDeath(member.number).exit_code() != 0);
    CHECK(!host.AwaitEnd(member.number).exec_error().empty());
  }
  CHECK(host.hvdd().Count(Kind::kLaunchFailed) == 0);
  CHECK(Eventually(10, [&] { return host.Carriers(1) == 1; }));
  host.StopClean(4);
}

TEST_CASE("who is not started in a slot that is used again ends like any other") {
  ElasticHost host(kSayWho);
  host.Prepare();
  host.Spawn({{1, 0, 0}}, {{1, 0, 0}});
  host.KillWhole(1);
  host.Spawn({{2, 0, 0}}, {{2, 0, 0}}, 1, 1000);  // into more shares than a host can have
  CHECK(!host.AwaitEnd(2).exec_error().empty());
  CHECK(host.hvdd().AwaitOutput(1).empty());
  host.Spawn({{3, 0, 0}}, {{3, 0, 0}});
  host.AwaitText(3, "member 3 rank 0 of 1\n");
  host.StopClean(3);
}

// Processes of the member's group, of a session of its own, double-forked into one, and one that
// respawns.
const char kTree[] =
    "sleep 1000 & setsid sleep 1000 & ( ( setsid sleep 1000 & ) & ) ; "
    "setsid sh -c 'while :; do sleep 0.02; done' & "
    "while :; do sleep 1000; done";
constexpr size_t kTreeSize = 5;

TEST_CASE("what a dead member leaves is killed, what a living one has left is not") {
  for (const std::string& level : WorkingLevels(false)) {
    CAPTURE(level);
    HvddOptions options;
    options.containment = level;
    ElasticHost host(kTree, options);
    host.prepare()->set_grace_s(1000);
    host.Prepare();
    const std::vector<Member> world = {{1, 0, 0}, {2, 1, 1}};
    host.Spawn(world, world);
    REQUIRE(Eventually(10, [&] { return host.Carriers(1) >= kTreeSize; }));
    REQUIRE(Eventually(10, [&] { return host.Carriers(2) >= kTreeSize; }));
    host.KillWhole(2);
    CHECK(Eventually(10, [&] { return host.Carriers(2) == 0; }));
    CHECK(Eventually(10, [&] { return host.Carriers(1) >= kTreeSize; }));
    host.StopClean(2);
  }
}

TEST_CASE("one that is retired takes nothing along that another has left") {
  ElasticHost host(
      "( ( setsid sleep 1000 & ) & ) ; trap 'exit 0' TERM; while :; do sleep 0.02; done");
  host.prepare()->set_grace_s(1000);
  host.Prepare();
  const std::vector<Member> world = {{1, 0, 0}, {2, 1, 1}};
  host.Spawn(world, world);
  for (const Member& member : world) {
    REQUIRE(Eventually(10, [&] { return host.Carriers(member.number) >= 3; }));
  }
  v1::Command retire;
  retire.mutable_retire_slot()->set_slot(1);
  retire.mutable_retire_slot()->set_cause("it is retired");
  host.hvdd().Send(retire);
  CHECK(host.AwaitEnd(2).exit_code() == 0);
  host.Spawn({{3, 1, 1}}, {{1, 0, 0}, {3, 1, 1}});
  host.PidOf(3);  // the shim has looked what was left before it started this one
  CHECK(Eventually(10, [&] { return host.Carriers(2) == 0; }));
  CHECK(Eventually(10, [&] { return host.Carriers(1) >= 3; }));
  host.StopClean(3);
}

TEST_CASE("a driver that is gone: no grace in an elastic job") {
  ElasticHost host("trap '' TERM; while :; do sleep 1000; done");
  host.prepare()->set_grace_s(1000);
  host.Prepare();
  host.Spawn({{1, 0, 0}}, {{1, 0, 0}});
  REQUIRE(host.hvdd().AwaitJobProcesses(2, 10));
  host.hvdd().Close();
  CHECK(host.hvdd().AwaitNothingLeft(10));
  CHECK(host.hvdd().AwaitExitOfDaemon(10));
}

TEST_CASE("the first TERM asks for the host, the second ends it") {
  ElasticHost host(kSayWho);
  host.Prepare();
  host.Spawn({{1, 0, 0}}, {{1, 0, 0}});
  host.PidOf(1);
  kill(host.hvdd().pid(), SIGTERM);
  const auto asked = host.hvdd().Await(Kind::kDrainAsked);
  REQUIRE(asked.has_value());
  CHECK(asked->drain_asked().cause() == "hvdd got signal 15 (Terminated)");
  host.Spawn({{2, 1, 1}}, {{1, 0, 0}, {2, 1, 1}});  // it goes on
  host.PidOf(2);
  CHECK(Eventually(10, [&] { return host.Carriers(1) == 1; }));
  CHECK(host.hvdd().Count(Kind::kLaunchFailed) == 0);
  kill(host.hvdd().pid(), SIGTERM);
  CHECK(host.hvdd().Await(Kind::kLaunchFailed).has_value());
  CHECK(host.hvdd().Await(Kind::kStopped).has_value());
  CHECK(host.hvdd().Count(Kind::kDrainAsked) == 1);
}

TEST_CASE("a rank's later worker appends to its files, and an earlier one's end is not its own") {
  char directory[] = "/tmp/hvd-test-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  std::filesystem::create_directory(std::string(directory) + "/rank.0000");
  std::ofstream(std::string(directory) + "/rank.0000/stdout") << "of a job before\n";
  // The third speaks again when hvdd no longer waits for the second's files.
  ElasticHost host(
      "echo \"member ${HVD_MEMBER_MARK##*.}\"; case $HVD_MEMBER_MARK in *.3) sleep 2; echo late; "
      "esac; exec sleep 1000");
  host.prepare()->set_output_directory(directory);
  host.Prepare();
  const std::string path = std::string(directory) + "/rank.0000/stdout";
  for (uint64_t member = 1; member <= 3; ++member) {
    host.Spawn({{member, 0, 0}}, {{member, 0, 0}});
    host.AwaitText(member, "member " + std::to_string(member) + "\n");
    if (member < 3) host.KillWhole(member);
  }
  host.AwaitText(3, "member 3\nlate\n");
  for (int nth = 1; nth <= host.hvdd().Count(Kind::kNotice); ++nth) {
    const std::string notice = host.hvdd().Await(Kind::kNotice, nth)->notice().text();
    CHECK(notice.find("does not answer") == std::string::npos);
  }
  host.StopClean(3);
  CHECK(Read(path) == "member 1\nmember 2\nmember 3\nlate\n");
  std::filesystem::remove_all(directory);
}

TEST_CASE("who follows a rank that was on another host appends, too") {
  char directory[] = "/tmp/hvd-test-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  std::filesystem::create_directory(std::string(directory) + "/rank.0000");
  const std::string path = std::string(directory) + "/rank.0000/stdout";
  std::ofstream(path) << "on another host\n";
  ElasticHost host("echo here; exec sleep 1000");
  host.prepare()->set_output_directory(directory);
  host.Prepare();
  host.Spawn({{7, 0, 0}}, {{7, 0, 0}}, 3);
  host.AwaitText(7, "here\n");
  host.StopClean(1);
  CHECK(Read(path) == "on another host\nhere\n");
  std::filesystem::remove_all(directory);
}

TEST_CASE("a host is divided anew for those who come") {
  ElasticHost host("nproc; exec sleep 1000");
  host.prepare()->set_slots(1);
  host.Prepare();
  host.Spawn({{1, 0, 0}}, {{1, 0, 0}});
  REQUIRE(Eventually(10, [&] { return !host.Output(1).empty(); }));
  host.Spawn({{2, 1, 1}}, {{1, 0, 0}, {2, 1, 1}}, 1, 2);
  REQUIRE(Eventually(10, [&] { return !host.Output(2).empty(); }));
  const int whole = std::stoi(host.Output(1)), half = std::stoi(host.Output(2));
  CHECK(half == std::max(1, whole / 2));
  host.StopClean(2);
}

}  // namespace
}  // namespace hvd::daemon
