// SPDX-License-Identifier: Apache-2.0
// A whole job in one thread: every rank's board and every host's leader, the real ones, with a
// random choice of who does what next. Says what went wrong.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/agreement/leader_core.h"
#include "tests/simulator/plan.h"
#include "tests/support/test_space.h"

namespace hvd::rt::simulator {

struct Stats {
  uint64_t marks = 0, decisions = 0, batches = 0;
  uint64_t root_messages = 0, other_messages = 0;  // sent by the roots; by all other hosts
  uint64_t root_children = 0;                      // sum over batches
  uint64_t other_batches = 0;  // sum over batches of hosts that are not the root
  uint64_t bytes = 0;
  uint64_t aborted_worlds = 0;
  void Add(const Stats& more);
};

class World {
 public:
  explicit World(const Plan& plan);
  ~World();
  // Empty, or what was violated, with the seed.
  std::string Run();
  const Stats& stats() const { return stats_; }

 private:
  struct Set;
  struct Host;
  struct Rank;
  struct Marks;
  struct Seen;
  struct Actor;

  void BuildSet(int index);
  void BuildHost(int index, int host);
  void Wake(uint32_t actor);
  void WakeHost(Set* set, int host);
  bool RunActor(uint32_t actor);
  bool RunRank(int rank);
  void Fail(const std::string& what);
  void CheckEnd();
  std::string DescribeOpen() const;  // who waits for whom
  static Host& HostOf(Set* set, int member);

  // Ranks (world_ranks.cc). True: something happened, ask again.
  bool StepRank(int rank);
  bool Execute(int rank, int set);
  bool Submit(int rank);
  bool SubmitItem(int rank, const Round& round);
  bool SubmitJoin(int rank, const Round& round);
  bool JoinSet(int rank, int set);
  bool LeaveAll(int rank);
  bool Refused(int rank, const absl::Status& status);
  std::vector<int> DrawOrder(int rank, const Round& round);
  static void NextRound(Rank* rank);
  bool MayStart(const Rank& rank, int round) const;
  int NameIndex(const std::string& name) const;
  void NoteExecuted(int rank, int set, int name);
  void NoteMark(Set* set, int member, const Item& item);
  void CheckEntry(Set* set, int member, const Seen& seen);
  void CheckRun(Set* set, const Seen& seen);

  // Leaders (world_leaders.cc).
  bool StepLeader(int set, int host);
  bool Deliver(int set, int host);
  void Send(Set* set, int from, const LeaderCore::Outcome& outcome);
  void LeaderFailed(Set* set, int host, const absl::Status& status);
  void BreakHost(int world_host);

  const Plan plan_;
  Random random_;
  test::TestSpace space_;                         // all hosts'
  std::vector<std::unique_ptr<HostPage>> pages_;  // by world host
  std::vector<int> host_of_;                      // by world rank
  std::vector<std::unique_ptr<Set>> sets_;
  std::vector<Rank> ranks_;
  std::vector<Actor> actors_;
  std::vector<uint32_t> runnable_;
  std::vector<bool> queued_;
  std::string violation_;
  Stats stats_;
};

}  // namespace hvd::rt::simulator
