// SPDX-License-Identifier: Apache-2.0
// The means of an operation over several hosts: the ranks of this host, the rails, and which part
// of a buffer goes on which. Ranks are counted by position here (host_order.h).
//
// Rails: the ranks with the same local rank, one on each host; as many as the smallest host has
// ranks. All operations cross on all rails, and large ones in chunks, so that what the hosts do and
// what crosses overlap (pipeline.h). Small ones go over the first rail alone.
//
// Threads: one caller at a time, as Collectives.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "hostfile/topology.h"
#include "runtime/collective/hierarchical/growing_room.h"
#include "runtime/collective/hierarchical/host_order.h"
#include "runtime/collective/host/host_collectives.h"
#include "runtime/collective/message/message_collectives.h"

namespace hvd::rt {

// A group is the job or a process set; its ranks are numbered from 0.
struct HierarchicalOptions {
  Waiter* waiter = nullptr;        // borrowed; has the transport set
  Transport* transport = nullptr;  // borrowed; knows the ranks by their numbers in the group
  void* region = nullptr;  // the group's on this host, HostCollectives::HostRegionBytes(local_size)
  const Topology* topology = nullptr;  // hosts with members, and how many
  int rank = 0;                        // in the group
  uint16_t channel = 0;                // of the transport; nobody else's
};

// The same on all ranks.
struct HierarchicalThresholds {
  HostThresholds host;
  MessageThresholds message;
  size_t rails_bytes = size_t{8} << 10;  // from this, all rails
};

class Rails {
 public:
  Rails(const HierarchicalOptions& options, const HierarchicalThresholds& thresholds,
        std::unique_ptr<HostCollectives> host);
  Rails(const Rails&) = delete;
  Rails& operator=(const Rails&) = delete;

  // Between operations, and the same on all ranks.
  void set_thresholds(const HierarchicalThresholds& thresholds);
  const HierarchicalThresholds& thresholds() const { return thresholds_; }
  size_t chunk_bytes() const { return thresholds_.message.chunk_bytes; }

  HostOrder& order() { return order_; }
  const HostOrder& order() const { return order_; }
  const Topology& topology() const { return order_.topology(); }  // of positions
  const RankPlace& place() const { return place_; }               // of this rank's position
  int size() const { return topology().size(); }
  int hosts() const { return static_cast<int>(topology().hosts().size()); }
  int count() const { return count_; }
  // One rank a host: a rail is everyone, and there is nothing to do in the hosts.
  bool flat() const { return size() == hosts(); }
  bool leads() const { return place_.local_rank == 0; }

  Waiter* waiter() const { return waiter_; }
  HostCollectives& host() const { return *host_; }
  bool on_rail() const { return rail_ != nullptr; }
  MessageCollectives& rail() const { return *rail_; }          // REQUIRES: on_rail()
  MessageCollectives& everyone() const { return *everyone_; }  // every rank, for an alltoall

  // How `count` elements of one host are divided among the rails: bounds by local rank.
  std::vector<size_t> Bounds(size_t count) const;
  // Where the hosts' blocks begin, and the end, of what has `by_position` for each position.
  std::vector<size_t> BlockBounds(absl::Span<const size_t> by_position) const;
  // Everyone on this host gets what the rails have of `bytes` bytes: each its slice, at its place.
  absl::Status Join(std::byte* data, size_t bytes);
  // Memory that all operations use one after the other; it grows to what was needed most.
  std::byte* Room(size_t index, size_t bytes);

 private:
  HostOrder order_;
  const RankPlace place_;
  HierarchicalThresholds thresholds_;
  const int count_;
  Waiter* const waiter_;
  const std::unique_ptr<HostCollectives> host_;
  std::unique_ptr<MessageCollectives> rail_;  // null on ranks beyond the rails
  std::unique_ptr<MessageCollectives> everyone_;
  std::vector<GrowingRoom> rooms_;
};

}  // namespace hvd::rt
