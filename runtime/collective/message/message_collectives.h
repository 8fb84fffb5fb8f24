// SPDX-License-Identifier: Apache-2.0
// Collectives of any ranks of a job over a message transport.
//
// Allreduce: one exchange among few ranks for a few bytes, recursive doubling for more, and a
// pipelined ring for many. Reduce-scatter and allgather go round a ring, alltoall is pairwise,
// broadcast a tree or a chain in segments, and the barrier disseminates.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/collective/collectives.h"
#include "runtime/collective/message/broadcast.h"
#include "runtime/collective/message/message_group.h"
#include "runtime/collective/message/reduce.h"
#include "runtime/collective/message/ring.h"
#include "runtime/collective/message/run.h"

namespace hvd::rt {

// The same on all ranks.
struct MessageThresholds {
  // Allreduce and allgather: up to this many bytes and ranks, one exchange of everyone with
  // everyone.
  size_t one_shot_bytes = size_t{2} << 10;
  int one_shot_ranks = 8;
  size_t ring_bytes = size_t{128} << 10;  // allreduce: from this, a ring
  // The bytes of one send; a ring of large slices takes up to four times as many.
  size_t segment_bytes = size_t{60} << 10;
  // Segments that a ring has on the wire; a quarter in a pipeline, where several share the link.
  size_t window = 16;
  size_t chain_bytes = size_t{256} << 10;  // broadcast: from this, a chain
  size_t chunk_bytes = size_t{1} << 20;    // what goes through a pipeline at a time
  // Sums are in rank order wherever an element lies, and so do not depend on the fusion.
  bool deterministic = false;
};

class MessageCollectives : public Collectives {
 public:
  explicit MessageCollectives(MessageGroupOptions options, const MessageThresholds& thresholds = {})
      : group_(std::move(options)), thresholds_(thresholds) {}
  // Between operations, and the same on all ranks.
  void set_thresholds(const MessageThresholds& thresholds) { thresholds_ = thresholds; }

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  absl::Status Allreduce(const ReduceArgs& args) override;
  absl::Status ReduceScatter(const ReduceScatterArgs& args) override;
  absl::Status Allgather(const GatherArgs& args) override;
  absl::Status Alltoall(const AlltoallArgs& args) override;
  absl::Status Broadcast(const BroadcastArgs& args) override;
  absl::Status Barrier() override;

  // The same in steps, for whoever has other things to do meanwhile: each begins an operation. The
  // buffers must live until the run is finished or destroyed.
  using Started = absl::StatusOr<std::unique_ptr<MessageRun>>;
  enum class Company { kAlone, kPiped };
  // REQUIRES for the reductions: size() > 1.
  Started StartAllreduce(const MessageReduce& reduce, Company company);
  Started StartReduceScatter(const MessageReduce& reduce, std::vector<Extent> slices,
                             Company company);
  Started StartAllgather(std::byte* buffer, std::vector<Extent> parts, Company company);
  // Starts the part of `args` with the peers whose numbers are in `peers`.
  Started StartAlltoall(const AlltoallArgs& args, const std::vector<int>& peers);
  Started StartBroadcast(const BroadcastArgs& args);

 private:
  RingPace PaceIn(Company company) const {
    const size_t share = company == Company::kAlone ? 1 : 4;
    return {std::max<size_t>(1, thresholds_.segment_bytes),
            std::max<size_t>(1, thresholds_.window / share)};
  }
  absl::Status AllreduceBuffer(const MessageReduce& reduce);
  absl::Status AllreduceInChunks(const MessageReduce& reduce);

  MessageGroup group_;
  MessageThresholds thresholds_;
  std::vector<std::byte> room_;    // what a peer sent, while doubling
  std::vector<std::byte> packed_;  // several tensors one after the other
};

}  // namespace hvd::rt
