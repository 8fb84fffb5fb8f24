// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/process_tree.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>

namespace hvd::daemon {
namespace {

TEST_CASE("a stat line with a name made to confuse") {
  ProcessFact fact;
  REQUIRE(ParseStat("123 (a) Z 9 (x) S 45 6 78 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876543 0",
                    &fact));
  CHECK(fact.pid == 123);
  CHECK(fact.state == 'S');
  CHECK(fact.parent == 45);
  CHECK(fact.group == 6);
  CHECK(fact.born == 9876543);
  CHECK(!ParseStat("", &fact));
  CHECK(!ParseStat("12 (cut", &fact));
}

TEST_CASE("descendants, also through a snapshot that holds a circle") {
  std::vector<ProcessFact> all = {{10, 1, 10, 'S'}, {11, 10, 10, 'S'}, {12, 11, 12, 'S'},
                                  {20, 1, 20, 'S'}, {30, 31, 30, 'S'}, {31, 30, 30, 'S'}};
  std::vector<int> pids;
  for (const ProcessFact& fact : Descendants(all, 10)) pids.push_back(fact.pid);
  std::sort(pids.begin(), pids.end());
  CHECK(pids == std::vector<int>{11, 12});
  CHECK(Descendants(all, 30).size() == 1);
}

TEST_CASE("what belongs to no living rank is left over") {
  constexpr int kShim = 1, kRank = 10;
  const std::vector<ProcessFact> all = {
      {kRank, kShim, kRank, 'S'}, {11, kRank, 11, 'S'}, {12, 11, 12, 'S'},  // of its own groups
      {13, kShim, kRank, 'S'},                                              // an orphan of the rank
      {14, kShim, 14, 'S'},       {15, 14, 99, 'S'},                        // whose, is not known
      {40, 2, kRank, 'S'}};                                                 // not below the shim
  std::set<int> pids;
  for (const ProcessFact& fact : Leftovers(all, kShim, {kRank})) pids.insert(fact.pid);
  CHECK(pids == std::set<int>{14, 15});
  CHECK(Leftovers(all, kShim, {}).size() == 6);
}

// A process that waits for a signal, with this mark in its environment.
class Marked {
 public:
  explicit Marked(const std::string& mark, bool own_group) {
    int ready[2];
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (own_group) setpgid(0, 0);
      char* const environment[] = {const_cast<char*>(mark.c_str()), nullptr};
      char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("1000"), nullptr};
      execve("/bin/sleep", words, environment);
      _exit(127);
    }
    close(ready[1]);
    char none;
    CHECK(read(ready[0], &none, 1) == 0);  // the exec has closed the other end
    close(ready[0]);
  }
  ~Marked() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;
  int pid() const { return pid_; }
  bool killed() const {
    siginfo_t info = {};
    return waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }
  void AwaitEnd() const {
    siginfo_t info = {};
    waitid(P_PID, pid_, &info, WEXITED | WNOWAIT);
  }

 private:
  int pid_ = -1;
};

TEST_CASE("what a member has left is killed, and nothing of another's") {
  const std::string mine = "HVD_MEMBER_MARK=job.7", others = "HVD_MEMBER_MARK=job.71";
  const Marked leader("A=1", true);
  const Marked child(mine, false), other(others, false), stranger("HVD_MEMBER_MARKS=job.7", false);
  KillLeftBy({leader.pid(), mine}, getpid(), {});
  leader.AwaitEnd();
  child.AwaitEnd();
  CHECK(!other.killed());
  CHECK(!stranger.killed());
}

TEST_CASE("one of another member is spared in a dead member's group, too") {
  const Marked other("HVD_MEMBER_MARK=job.8", true);
  KillLeftBy({other.pid(), "HVD_MEMBER_MARK=job.7"}, getpid(), {});
  CHECK(!other.killed());
}

TEST_CASE("a dead member's is what has its mark, its group and what is below, but nobody else's") {
  constexpr int kShim = 1, kRank = 10, kDead = 20;
  const std::vector<ProcessFact> all = {
      {kRank, kShim, kRank, 'S'}, {11, kRank, 11, 'S'},
      {12, kShim, kRank, 'S'},                        // the living one's
      {21, kShim, kDead, 'S'},    {22, 21, 22, 'S'},  // of its group, and below
      {23, kShim, 23, 'S'},       {24, 23, 24, 'S'},  // marked, and below
      {25, kShim, kDead, 'S'},    {26, kShim, 26, 'S'},
      {27, kShim, kDead, 'Z'}};
  const auto mark_of = [](int pid) {
    if (pid == 11 || pid == 23) return "M=7";  // 11 copies its environment, but is another's child
    return pid == 25 ? "M=8" : "";
  };
  std::set<int> pids;
  for (const ProcessFact& fact : LeftBy({kDead, "M=7"}, all, kShim, {kRank}, mark_of)) {
    pids.insert(fact.pid);
  }
  CHECK(pids == std::set<int>{21, 22, 23, 24});
}

TEST_CASE("this process is found in /proc") {
  const std::vector<ProcessFact> all = ReadProcesses();
  CHECK(std::any_of(all.begin(), all.end(),
                    [](const ProcessFact& fact) { return fact.pid == getpid(); }));
}

}  // namespace
}  // namespace hvd::daemon
