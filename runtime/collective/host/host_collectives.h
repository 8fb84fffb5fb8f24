// SPDX-License-Identifier: Apache-2.0
// Collectives of the ranks of one host through shared memory, whether processes or threads.
//
// Within a host sums are in rank order, so results depend neither on timing nor on the path.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/large_reduce.h"

namespace hvd::rt {

// From what size on which way is taken; measured with two pinned ranks. The same on all ranks.
struct HostThresholds {
  // Up to this all read all; times 2/size above 2 ranks.
  size_t one_shot_bytes = size_t{16} << 10;
  size_t staged_piece_bytes = size_t{64} << 10;
  // Gathered outputs from this on go past the caches.
  size_t stream_bytes = size_t{16} << 20;
  PeerReadOptions peer_reads;
};

class HostCollectives : public Collectives {
 public:
  static size_t HostRegionBytes(int local_size) { return HostRegion::Bytes(local_size); }

  // Waits for all ranks of the host. The region is fresh (zeroed) in each epoch.
  static absl::StatusOr<std::unique_ptr<HostCollectives>> Create(
      const HostGroupOptions& options, const HostThresholds& thresholds = {});
  // Between operations, and the same on all ranks.
  void set_thresholds(const HostThresholds& thresholds) { thresholds_ = thresholds; }

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  absl::Status Allreduce(const ReduceArgs& args) override;
  absl::Status ReduceScatter(const ReduceScatterArgs& args) override;
  absl::Status Allgather(const GatherArgs& args) override;
  absl::Status Alltoall(const AlltoallArgs& args) override;
  absl::Status Broadcast(const BroadcastArgs& args) override;
  // This rank's part of an allreduce whose tensors all ranks of the host see (host_inputs and
  // host_outputs): its slice, in everyone's buffers. Waits for nobody. The caller sees to it that
  // all have handed their buffers over, and that none uses its own before all have done their part.
  absl::Status SumOwnSlice(const ReduceArgs& args);
  absl::Status Barrier() override;

  // The first half of an allreduce: rank r gets the reduction of elements bounds[r] to
  // bounds[r + 1] in args.output, which may be that very place in args.input. If there are several
  // parts, their inputs count; the slice goes to args.output all the same. `bounds`: size() + 1,
  // from 0 to the number of elements, the same on all ranks.
  absl::Status ReduceScatter(const ReduceArgs& args, const std::vector<size_t>& bounds);

 private:
  HostCollectives(std::unique_ptr<HostGroup> group, const HostThresholds& thresholds);

  const std::unique_ptr<HostGroup> group_;
  HostThresholds thresholds_;
  LargeReduce large_reduce_;
};

}  // namespace hvd::rt
