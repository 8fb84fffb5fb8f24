// SPDX-License-Identifier: Apache-2.0
// The tree of hosts, and who reports to a host in it. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "hostfile/topology.h"

namespace hvd::rt {

// The tree of hosts.
struct LeaderTree {
  static constexpr int kFanOut = 16;
  static int Parent(int host, int fan_out) { return host == 0 ? -1 : (host - 1) / fan_out; }
  static std::vector<int> Children(int host, int hosts, int fan_out);
};

// The sources of a host's leader: 0 is its own board, then come its children in order.
class LeaderSources {
 public:
  LeaderSources(const Topology& topology, int host, int fan_out);

  const std::vector<int>& children() const { return children_; }
  // Returns the source that a host is; -1: none.
  int Of(int host) const;
  int HostOf(int source) const { return source == 0 ? host_ : children_[source - 1]; }
  // The ranks in a source's subtree, and in all.
  int RanksBelow(int source) const { return below_[source]; }
  int RanksBelow() const { return all_below_; }
  // A bit a source.
  uint32_t all() const { return (2u << children_.size()) - 1; }

 private:
  const int host_;
  const std::vector<int> children_;
  std::vector<int> below_;  // by source
  int all_below_ = 0;
};

}  // namespace hvd::rt
