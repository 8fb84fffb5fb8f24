// SPDX-License-Identifier: Apache-2.0
// An epoch as its driver has proposed it, seen from one host. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "hostfile/topology.h"

namespace hvd::daemon {

// Elastic: the driver's word on the state of an epoch's members (link A's EpochPropose).
struct EpochState {
  uint64_t resume_commit = 0;
  int root = -1;
  std::vector<int> needy;  // ranks
  bool rolls_back = false;
  int survivors = 0;
  bool is_void = false;  // of this host: what it has kept is of no use
};

struct EpochPlan {
  uint64_t epoch = 0;
  Topology topology;
  int host = -1;           // this one's place in the topology; -1: it has none
  std::vector<int> slots;  // its members' slots, in the order of their local ranks
  EpochState state = {};

  // -1: the member of that slot is not in it.
  int LocalRankOf(int slot) const;
  int RankOf(int local_rank) const { return topology.rank_at(host, local_rank); }
  int RankIn(int slot) const { return RankOf(LocalRankOf(slot)); }
};

}  // namespace hvd::daemon
