// SPDX-License-Identifier: Apache-2.0
// Where this rank stands in a process set and in the job. It does not change.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hostfile/topology.h"
#include "proto/page/host_page.h"

namespace hvd::rt {

// The most sets that all ranks know; the global set is one of them.
inline constexpr int kMaxProcessSets = 16;
// The most sets that only their members know, for each rank; and how far their channels go.
inline constexpr int kMaxMemberSets = kWatchedSets - kMaxProcessSets;
inline constexpr int kMaxChannels = 1365;

// A process set of which this rank is a member.
struct SetPlace {
  int region = 0;                 // which of the memory's, where hvdd looks; no other set's here
  std::vector<int> global_ranks;  // ascending
  int32_t id = 0;                 // as users know it
  // The members of a set that only they know have agreed on these; 0: follows from the region.
  int channels = 0;
  uint64_t memory_at = 0;  // on this host
};

class SetSeat {
 public:
  // `job`: in the set of all; null: this is that set. Borrowed, and outlives this.
  SetSeat(Topology topology, int rank, const SetSeat* job = nullptr, SetPlace set = {})
      : topology_(std::move(topology)), rank_(rank), job_(job), set_(std::move(set)) {}

  // All numbers are those within the set.
  const Topology& topology() const { return topology_; }
  const RankPlace& place() const { return topology_.place(rank_); }
  int rank() const { return rank_; }
  // The numbers of the set itself.
  const SetPlace& set() const { return set_; }
  // Empty in the global set: all.
  const std::vector<int>& members() const { return set_.global_ranks; }

  const SetSeat& in_job() const { return job_ == nullptr ? *this : *job_; }
  // In the job, of a rank of this set.
  int GlobalRank(int rank) const {
    return members().empty() ? rank : members()[static_cast<size_t>(rank)];
  }
  // The local rank in the whole job of a local rank of this set.
  int LocalRankInJob(int local_rank) const {
    const int in_set = topology_.rank_at(place().host, local_rank);
    return in_job().topology_.place(GlobalRank(in_set)).local_rank;
  }
  // This rank's host, as the job counts them.
  int HostInJob() const { return in_job().place().host; }

 private:
  const Topology topology_;
  const int rank_;
  const SetSeat* const job_;
  const SetPlace set_;
};

}  // namespace hvd::rt
