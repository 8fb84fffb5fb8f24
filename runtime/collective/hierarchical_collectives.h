// Collectives of a job of several hosts: what can be done inside a host is, and only slices cross.
//
// Rails: the ranks with the same local rank, one on each host; as many as the smallest host has
// ranks. An allreduce is a reduce-scatter inside each host (over the rails' ranks), an allreduce of
// each slice along its rail, and an allgather inside each host, so every host sends and receives
// 2(h-1)/h of the buffer whatever its number of ranks. Small ones go over the first rail alone.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "runtime/collective/host_collectives.h"
#include "runtime/collective/message_collectives.h"

namespace hvd {

// A group is the job or a process set; its ranks are numbered from 0, by host.
struct HierarchicalOptions {
  Waiter* waiter = nullptr;        // borrowed; has the transport set
  Transport* transport = nullptr;  // borrowed
  void* region = nullptr;  // the group's on this host, HostCollectives::HostRegionBytes(local_size)
  const Topology* topology = nullptr;  // hosts with members, and how many
  int rank = 0;                        // in the group
  uint16_t channel = 0;                // of the transport; nobody else's
  // Whom the transport knows as what, by rank in the group; empty: the same numbers.
  std::vector<int> global_ranks = {};
};

struct HierarchicalThresholds {
  HostThresholds host;
  MessageThresholds message;
  size_t rails_bytes = size_t{8} << 10;  // allreduce: from this, all rails
};

class HierarchicalCollectives : public Collectives {
 public:
  // Waits for all ranks of this host.
  static absl::StatusOr<std::unique_ptr<HierarchicalCollectives>> Create(
      const HierarchicalOptions& options, const HierarchicalThresholds& thresholds = {});

  int rank() const override { return place_.rank; }
  int size() const override { return topology_.size(); }
  absl::Status Allreduce(const ReduceArgs& args) override;
  absl::Status Allgather(const GatherArgs& args) override;
  absl::Status Broadcast(const BroadcastArgs& args) override;
  absl::Status Barrier() override;

 private:
  HierarchicalCollectives(const HierarchicalOptions& options,
                          const HierarchicalThresholds& thresholds,
                          std::unique_ptr<HostCollectives> host);
  absl::Status AllreduceOnFirstRail(const ReduceArgs& args);
  absl::Status AllreduceOnRails(const ReduceArgs& args);
  bool leads() const { return place_.local_rank == 0; }

  const Topology topology_;
  const RankPlace place_;
  const HierarchicalThresholds thresholds_;
  int rails_ = 0;
  const std::unique_ptr<HostCollectives> host_;
  std::unique_ptr<MessageCollectives> rail_;  // null on ranks beyond the rails
};

}  // namespace hvd
