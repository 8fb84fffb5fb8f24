// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, out of the hosts' answers. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/job/stall/stuck_work.h"
#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

// A rank of the newest epoch for whom others wait outside any collective.
struct AwaitedRank {
  int rank = 0;
  int slot = 0;
  double waited_s = 0;
  std::string by;  // "the next epoch"
};

class StallBook {
 public:
  explicit StallBook(const Topology* topology) : topology_(topology) {}

  // A new question to all hosts: earlier answers are forgotten.
  void Begin();
  bool asking() const { return asking_; }
  void Answered(int host, const v1::HostPending& pending);
  // Whether all of `hosts` have answered.
  bool Complete(const std::vector<int>& hosts) const;

  struct Report {
    std::string text;     // empty: nobody is missing, and nothing stands still
    double waited_s = 0;  // the longest
    // The ranks that are waited for and that the kernel holds (SIGSTOP, a debugger); and the hosts
    // that are waited for and between which nothing passes.
    std::vector<int> held = {};
    std::vector<std::pair<int, int>> cut = {};
  };
  // Ends the question. A host that has not answered is said so. Tensors that have waited for less
  // than `least_s` are left out, and of `awaited` those that are not held.
  Report End(double least_s, const std::vector<AwaitedRank>& awaited = {});

 private:
  struct Tensor {
    std::string what;
    double waited_s = 0;
    std::vector<int> have;     // ranks, sorted
    std::vector<int> members;  // sorted; empty: all
  };
  using Key = std::pair<int, std::string>;  // set, name

  // The report that is told, as it grows.
  struct Telling {
    Report report;
    std::vector<int> ranks;  // to tell more of
  };
  // Tensors that wait for the same ranks, by these.
  struct Group;
  using Groups = std::map<std::vector<int>, Group>;

  std::map<Key, Tensor> Merge() const;
  bool IsExecuting(int host, uint32_t rank, int set) const;
  std::set<int> SetsWithMissing(double least_s) const;
  Groups GroupMissing(double least_s, const std::set<int>& but_sets) const;
  void TellMissing(const Groups& groups, Telling* telling) const;
  void TellStuck(const StuckWork& stuck, Telling* telling) const;
  std::string Links(const StuckWork& stuck) const;
  std::vector<int> Missing(const Tensor& tensor) const;
  std::string Doing(int rank) const;
  bool IsHeld(int rank) const;
  double HeldFor(const AwaitedRank& awaited) const;
  void TellAwaited(const std::vector<AwaitedRank>& awaited, double least_s, Telling* telling) const;

  const Topology* const topology_;
  bool asking_ = false;
  PendingByHost answers_;
};

}  // namespace hvd::cli
