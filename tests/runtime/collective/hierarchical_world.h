// SPDX-License-Identifier: Apache-2.0
// Several hosts as threads: a region and event fds for each host, a loopback between all ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "tests/runtime/collective/host_world.h"
#include "tests/runtime/transport/transport_world.h"

namespace hvd::rt::test {

class HierarchicalWorld : public World {
 public:
  HierarchicalWorld(std::vector<int> ranks_by_host, const HierarchicalThresholds& thresholds)
      : thresholds_(thresholds) {
    std::vector<HostShape> hosts;
    for (const int ranks : ranks_by_host) {
      hosts.push_back({"host" + std::to_string(hosts.size()), ranks});
      name_ += (name_.empty() ? "hosts of " : "+") + std::to_string(ranks);
    }
    topology_ = Topology(hosts);
  }
  // By rank: the number of its host.
  HierarchicalWorld(const char* how, const std::vector<int>& host_of_rank,
                    const HierarchicalThresholds& thresholds)
      : thresholds_(thresholds), name_(how) {
    const std::vector<std::string> names = {"host0", "host1", "host2"};
    topology_ = Topology::Numbered(names, host_of_rank);
  }

  std::string name() const override { return name_; }
  int size() const override { return topology_.size(); }
  std::string Run(const RankBody& body) override {
    memories_.clear();
    for (const HostShape& host : topology_.hosts()) {
      memories_.push_back(std::make_unique<HostMemory>(host.ranks, true));
    }
    TransportWorld transports(TransportKind::kLoopback, size());
    return RunRanks(size(), [&](int rank) -> std::string {
      const RankPlace& place = topology_.place(rank);
      const HostMemory& memory = *memories_[place.host];
      auto transport = transports.Join(rank);
      if (!transport.ok()) return transport.status().ToString();
      Waiter waiter(memory.page(), place.local_rank, memory.event_fds(),
                    WaitPolicy::For(size(), UsableCores()));
      waiter.set_transport(transport->get());
      auto ranks = HierarchicalCollectives::Create(
          {&waiter, transport->get(), memory.region(), &topology_, rank, 2}, thresholds_);
      return ranks.ok() ? body(**ranks) : ranks.status().ToString();
    });
  }
  // As the driver has it done: on every host.
  void Abort(const char* cause) override {
    for (const auto& memory : memories_) AbortEpoch(memory->page(), cause, memory->event_fds());
  }

 private:
  const HierarchicalThresholds thresholds_;
  std::string name_;
  Topology topology_;
  std::vector<std::unique_ptr<HostMemory>> memories_;
};

}  // namespace hvd::rt::test
