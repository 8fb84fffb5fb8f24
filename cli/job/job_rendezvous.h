// SPDX-License-Identifier: Apache-2.0
// The driver's half of an epoch's rendezvous: addresses of all hosts in, the table out; ready hosts
// in, the start out. Pure. Epochs follow one another as ranks call hvd_init and hvd_shutdown; a
// later one may begin while some ranks are still in the one before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

class JobRendezvous {
 public:
  explicit JobRendezvous(const Topology* topology) : topology_(topology) {}

  void Joined(int rank, uint64_t epoch, double now);
  void Withdrawn(int rank, uint64_t epoch);
  // Returns the table when the last host has spoken.
  std::optional<v1::EpochTable> Collect(int host, const v1::HostAddresses& addresses);
  // True when the last host is ready.
  bool Ready(int host, uint64_t epoch);

  // The epochs that have not started, in which others wait and this rank has not come to.
  std::vector<uint64_t> WaitingFor(int rank) const;

  // The newest epoch that a host has joined; 0 before the first.
  uint64_t newest() const { return newest_; }
  // Since when some ranks are in epoch 1 while others are not; 0 if it is not so, or if some are in
  // a later one.
  double waiting_since() const;
  // The ranks that epoch 1 waits for, as "host1 (rank 3), host2 (ranks 4-7)".
  std::string Missing() const;

 private:
  struct Gathering {
    double since = 0;
    std::set<int> joined;                        // ranks
    std::map<int, v1::HostAddresses> addresses;  // by host
    std::set<int> ready;
  };
  bool WaitedIn(uint64_t epoch) const;

  const Topology* topology_;
  uint64_t newest_ = 0;
  std::map<int, uint64_t> latest_;  // by rank: the epoch that it has joined last
  // Epochs not started yet, in which some rank still is: one that was aborted is over for a rank
  // when it joins the next.
  std::map<uint64_t, Gathering> gathering_;
};

}  // namespace hvd::cli
