// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks on several hosts: what can be done inside a host is, and only slices cross,
// on rails (rails.h). In a job of one host it passes everything on to that host.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/hierarchical/rails.h"

namespace hvd::rt {

// Threads: one caller at a time, as Collectives.
class HierarchicalCollectives : public Collectives {
 public:
  // Waits for all ranks of this host.
  static absl::StatusOr<std::unique_ptr<HierarchicalCollectives>> Create(
      const HierarchicalOptions& options, const HierarchicalThresholds& thresholds = {});
  // Between operations, and the same on all ranks.
  void set_thresholds(const HierarchicalThresholds& thresholds) {
    rails_.set_thresholds(thresholds);
  }

  // A first exchange between hosts, so that connections are made before the epoch's work: UCX 1.13
  // ends the process when a peer dies while it answers that peer's request to connect. In small
  // groups everyone meets everyone of other hosts (an alltoall needs that), in larger ones the
  // ranks of a rail, among very many hosts a rail's neighbours; others connect when they first
  // send.
  absl::Status MeetPeers();

  int rank() const override { return rails_.order().rank_at(rails_.place().rank); }
  int size() const override { return rails_.size(); }
  absl::Status Allreduce(const ReduceArgs& args) override;
  absl::Status ReduceScatter(const ReduceScatterArgs& args) override;
  absl::Status Allgather(const GatherArgs& args) override;
  absl::Status Alltoall(const AlltoallArgs& args) override;
  absl::Status Broadcast(const BroadcastArgs& args) override;
  absl::Status Barrier() override;

 private:
  HierarchicalCollectives(const HierarchicalOptions& options,
                          const HierarchicalThresholds& thresholds,
                          std::unique_ptr<HostCollectives> host)
      : rails_(options, thresholds, std::move(host)), transport_(options.transport) {}
  bool one_host() const { return rails_.hosts() == 1; }

  Rails rails_;
  Transport* const transport_;
};

}  // namespace hvd::rt
