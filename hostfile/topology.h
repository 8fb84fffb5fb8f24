// SPDX-License-Identifier: Apache-2.0
// Who sits where: the one answer, computed once from hosts and np and carried as host shapes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "hostfile/host_slots.h"

namespace hvd {

// A host of the job and how many ranks it has (at least one).
struct HostShape {
  std::string name;
  int ranks = 0;
  bool operator==(const HostShape&) const = default;
};

struct RankPlace {
  int rank = 0;
  int host = 0;  // index into hosts()
  int local_rank = 0;
  int local_size = 0;
  int cross_rank = 0;  // index of this host among the hosts that own this local_rank
  int cross_size = 0;  // how many hosts own it
};

// Immutable. Ranks fill the hosts in order, as Horovod's do; hosts may be uneven.
class Topology {
 public:
  Topology() = default;
  explicit Topology(std::vector<HostShape> hosts);

  // Places exactly np ranks. FailedPrecondition with each host's slots when there are too few;
  // hosts that get no rank are left out.
  static absl::StatusOr<Topology> Place(absl::Span<const HostSlots> hosts, int np);

  int size() const { return static_cast<int>(places_.size()); }
  const std::vector<HostShape>& hosts() const { return hosts_; }
  const RankPlace& place(int rank) const { return places_[rank]; }
  // The first global rank of a host; its ranks are contiguous.
  int first_rank(int host) const { return first_ranks_[host]; }
  bool is_homogeneous() const;

 private:
  std::vector<HostShape> hosts_;
  std::vector<RankPlace> places_;
  std::vector<int> first_ranks_;
};

}  // namespace hvd
