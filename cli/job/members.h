// Who works for the job, and as which rank. A member is one worker from its start to its end, at a
// (host, slot); its number is never used again, and 0 is nobody's. Its rank belongs to the epoch.
// Pure. Only the driver numbers members and epochs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd {

class Members {
 public:
  // The members that a job starts with: one for each rank of `topology`, in the slots of its host
  // one after the other.
  explicit Members(const Topology& topology);

  // In the newest epoch. -1: there is no such member, or it has no place there.
  int RankOf(uint64_t member) const;

  // The next epoch, with all members in it.
  v1::EpochPropose Propose();
  // The newest epoch that has been proposed, 0: none yet.
  uint64_t proposed() const { return proposed_; }

  // What starts the members of `host`. `takes_stdin` is asked of their ranks.
  v1::SpawnSlots Seats(int host, const std::function<bool(int rank)>& takes_stdin) const;

 private:
  const Topology topology_;
  std::vector<uint64_t> by_rank_;  // of the newest epoch
  uint64_t proposed_ = 0;
};

}  // namespace hvd
