// SPDX-License-Identifier: Apache-2.0
// Who works for the job, and as which rank. A member is one worker from its start to its end, at a
// (host, slot); its number is never used again, and 0 is nobody's. Its rank belongs to the epoch.
// Pure. Only the driver numbers members and epochs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

class Members {
 public:
  // The members that a job starts with: one for each rank of `topology`, in the slots of its host
  // one after the other.
  explicit Members(const Topology& topology);

  // In the newest epoch. -1: there is no such member, or it has no place there.
  int RankOf(uint64_t member) const;

  // The next epoch, with all members in it.
  v1::EpochPropose Propose();
  // The next epoch, as somebody else has chosen it. The topology is that of the newest epoch then.
  void Adopt(const v1::EpochPropose& propose);
  // Whether the newest epoch has all hosts that the job ever had, since none was adopted.
  bool all_are_in() const { return old_.empty(); }
  // The driver's numbers of the newest epoch's hosts, in the order of its topology.
  const std::vector<int>& hosts() const { return hosts_; }
  // The place of a host there; -1: it has none.
  int PlaceOf(int host) const;
  // Returns the member that was this rank of the epoch. 0: none that is known.
  uint64_t MemberAt(uint64_t epoch, uint32_t rank) const;
  // The newest epoch that has been proposed, 0: none yet.
  uint64_t proposed() const { return proposed_; }

  // Makes the command that starts the members of `host`. `takes_stdin` is asked of their ranks.
  v1::SpawnSlots Seats(int host, const std::function<bool(int rank)>& takes_stdin) const;

 private:
  const Topology topology_;                        // of a job whose members stay
  std::vector<uint64_t> by_rank_;                  // of the newest epoch
  std::vector<int> hosts_;                         // of the newest epoch
  std::map<uint64_t, std::vector<uint64_t>> old_;  // by rank, of the last epochs before it
  uint64_t proposed_ = 0;
};

}  // namespace hvd::cli
