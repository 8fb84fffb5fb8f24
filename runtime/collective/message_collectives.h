// Collectives of any ranks of a job over a message transport.
//
// Small allreduces double recursively (log2 n exchanges of everything, lower group's sum first on
// both sides, so that both get the same bits); large ones go round a ring, where the order of
// summation depends on the slice. Broadcast is a binomial tree, in segments; the barrier
// disseminates.
#pragma once

#include <memory>
#include <vector>

#include "runtime/collective/collectives.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/message_group.h"

namespace hvd {

// The same on all ranks.
struct MessageThresholds {
  size_t ring_bytes = size_t{512} << 10;  // allreduce: from this, a ring
  size_t segment_bytes = size_t{256} << 10;
};

class MessageCollectives : public Collectives {
 public:
  explicit MessageCollectives(MessageGroupOptions options, const MessageThresholds& thresholds = {})
      : group_(std::move(options)), thresholds_(thresholds) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  absl::Status Allreduce(const ReduceArgs& args) override { return Allreduce(args, size()); }
  absl::Status Allgather(const GatherArgs& args) override;
  absl::Status Broadcast(const BroadcastArgs& args) override;
  absl::Status Barrier() override;

  // As Allreduce; AVERAGE divides by `divisor` instead of size().
  absl::Status Allreduce(const ReduceArgs& args, int divisor);

 private:
  absl::Status DoubleRecursively(const ReduceArgs& args, ReduceKernel kernel, int divisor);
  absl::Status ExchangeAndReduce(const ReduceArgs& args, ReduceKernel kernel, int peer,
                                 int divisor);

  MessageGroup group_;
  const MessageThresholds thresholds_;
  std::vector<std::byte> room_;  // what a peer sent, while doubling
};

}  // namespace hvd
