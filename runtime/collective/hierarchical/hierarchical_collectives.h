// Collectives of ranks on several hosts: what can be done inside a host is, and only slices cross.
//
// Rails: the ranks with the same local rank, one on each host; as many as the smallest host has
// ranks. An allreduce is a reduce-scatter inside each host (over the rails' ranks), an allreduce of
// each slice along its rail, and an allgather inside each host, so every host sends and receives
// 2(h-1)/h of the buffer whatever its number of ranks. All operations cross on all rails, and large
// ones in chunks, so that the three phases overlap (pipeline.h). Small ones go over the first rail
// alone.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "runtime/collective/host/host_collectives.h"
#include "runtime/collective/message/message_collectives.h"
#include "runtime/collective/tensor_view.h"

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

// The same on all ranks.
struct HierarchicalThresholds {
  HostThresholds host;
  MessageThresholds message;
  size_t rails_bytes = size_t{8} << 10;  // from this, all rails
};

class HierarchicalCollectives : public Collectives {
 public:
  // Waits for all ranks of this host.
  static absl::StatusOr<std::unique_ptr<HierarchicalCollectives>> Create(
      const HierarchicalOptions& options, const HierarchicalThresholds& thresholds = {});
  // Between operations, and the same on all ranks.
  void set_thresholds(const HierarchicalThresholds& thresholds);

  // A first exchange between hosts, so that connections are made before the epoch's work: UCX 1.13
  // ends the process when a peer dies while it answers that peer's request to connect. In small
  // groups everyone meets everyone of other hosts (an alltoall needs that), in larger ones the
  // ranks of a rail, among very many hosts a rail's neighbours; others connect when they first
  // send.
  absl::Status MeetPeers();

  int rank() const override { return place_.rank; }
  int size() const override { return topology_.size(); }
  absl::Status Allreduce(const ReduceArgs& args) override;
  absl::Status ReduceScatter(const ReduceScatterArgs& args) override;
  absl::Status Allgather(const GatherArgs& args) override;
  absl::Status Alltoall(const AlltoallArgs& args) override;
  absl::Status Broadcast(const BroadcastArgs& args) override;
  absl::Status Barrier() override;

 private:
  HierarchicalCollectives(const HierarchicalOptions& options,
                          const HierarchicalThresholds& thresholds,
                          std::unique_ptr<HostCollectives> host);
  friend class HierarchicalReduceScatter;  // reduce_scatter.cc
  std::vector<int> WhomToMeet() const;
  absl::Status AwaitSettled();  // until the connections that peers asked for are made
  // allreduce.cc
  absl::Status AllreduceOnFirstRail(const ReduceArgs& args, const TensorView& view);
  absl::Status AllreduceOnRails(const ReduceArgs& args, const TensorView& view);
  // moves.cc
  absl::Status AllgatherOnFirstRail(const GatherArgs& args);
  absl::Status AllgatherOnRails(const GatherArgs& args);
  absl::Status BroadcastOnOneRail(const BroadcastArgs& args);
  absl::Status BroadcastOnRails(const BroadcastArgs& args);
  // Everyone on this host gets what the rails have of `bytes` bytes: each its slice, at its place.
  absl::Status JoinRails(std::byte* data, size_t bytes);
  // Where the hosts' blocks begin, and the end, of what has `by_rank` for each rank.
  std::vector<size_t> BlockBounds(absl::Span<const size_t> by_rank) const;

  // Ranks, or hosts, up to which all meet: a connection takes some 100 us.
  static constexpr int kMostMet = 64;

  // One rank a host: a rail is everyone, and there is nothing to do in the hosts.
  bool flat() const { return size() == hosts(); }
  int hosts() const { return static_cast<int>(topology_.hosts().size()); }
  bool leads() const { return place_.local_rank == 0; }
  // How `count` elements of one host are divided among the rails: bounds by local rank.
  std::vector<size_t> RailBounds(size_t count) const;
  std::byte* Room(size_t index, size_t bytes);

  const Topology topology_;
  const RankPlace place_;
  HierarchicalThresholds thresholds_;
  int rails_ = 0;
  Waiter* const waiter_;
  Transport* const transport_;
  const std::unique_ptr<HostCollectives> host_;
  std::unique_ptr<MessageCollectives> rail_;  // null on ranks beyond the rails
  std::unique_ptr<MessageCollectives> all_;   // every rank, for an alltoall
  // Reused by all operations; each grows to what was needed most.
  struct RoomMemory {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes = 0;
  };
  std::vector<RoomMemory> rooms_;
};

}  // namespace hvd
