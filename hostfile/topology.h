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
  // Which they are, ascending. Empty, as for all other hosts: those that follow the host before.
  std::vector<int> numbers = {};
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

// Immutable. Ranks fill the hosts in order, as Horovod's do, unless a launcher has numbered them
// otherwise; hosts may be uneven.
class Topology {
 public:
  Topology() = default;
  // REQUIRES: CheckNumbers(hosts). Numbers that say what holds without them are dropped.
  explicit Topology(std::vector<HostShape> hosts);

  // InvalidArgument: some hosts have numbers and others don't, or they are not each rank once, or
  // the hosts are not in the order of their first ranks.
  static absl::Status CheckNumbers(absl::Span<const HostShape> hosts);
  // The hosts of ranks that lie on `host_of_rank` of `hosts`: in the order of their first ranks.
  static Topology Numbered(absl::Span<const std::string> hosts, absl::Span<const int> host_of_rank);

  // Places exactly np ranks. FailedPrecondition with each host's slots when there are too few;
  // hosts that get no rank are left out.
  static absl::StatusOr<Topology> Place(absl::Span<const HostSlots> hosts, int np);

  int size() const { return static_cast<int>(places_.size()); }
  const std::vector<HostShape>& hosts() const { return hosts_; }
  const RankPlace& place(int rank) const { return places_[rank]; }
  // The ranks of a host, by local rank.
  absl::Span<const int> ranks_of(int host) const {
    return absl::MakeConstSpan(ranks_).subspan(first_[host], hosts_[host].ranks);
  }
  int rank_at(int host, int local_rank) const { return ranks_[first_[host] + local_rank]; }
  // The ranks of a host are neighbours, and follow those of the host before.
  bool is_host_by_host() const { return hosts_.empty() || hosts_.front().numbers.empty(); }
  bool is_homogeneous() const;

 private:
  std::vector<HostShape> hosts_;
  std::vector<RankPlace> places_;
  std::vector<int> ranks_;  // host after host
  std::vector<int> first_;  // by host: where its ranks begin in them
};

}  // namespace hvd
