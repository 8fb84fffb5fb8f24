// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/leader_sources.h"

#include <algorithm>

namespace hvd::rt {

std::vector<int> LeaderTree::Children(int host, int hosts, int fan_out) {
  std::vector<int> children;
  for (int child = host * fan_out + 1; child <= (host + 1) * fan_out && child < hosts; ++child) {
    children.push_back(child);
  }
  return children;
}

LeaderSources::LeaderSources(const Topology& topology, int host, int fan_out)
    : host_(host),
      children_(LeaderTree::Children(host, static_cast<int>(topology.hosts().size()), fan_out)) {
  const auto& hosts = topology.hosts();
  std::vector<int> subtree(hosts.size());
  for (int at = static_cast<int>(hosts.size()) - 1; at >= 0; --at) {
    subtree[at] += hosts[at].ranks;
    if (at > 0) subtree[LeaderTree::Parent(at, fan_out)] += subtree[at];
  }
  below_ = {hosts[host].ranks};
  for (const int child : children_) below_.push_back(subtree[child]);
  for (const int ranks : below_) all_below_ += ranks;
}

int LeaderSources::Of(int host) const {
  const auto found = std::find(children_.begin(), children_.end(), host);
  return found == children_.end() ? -1 : static_cast<int>(found - children_.begin()) + 1;
}

}  // namespace hvd::rt
