// A ring in a pipeline: in every step a rank passes a slice on to its right neighbour and takes one
// from its left. Slices are cut in segments; segment s of step t+1 needs only segment s of step t,
// so with two or more segments there is always one on the wire while another is worked on.
//
// Allreduce takes 2(n-1) steps (the first n-1 reduce) and moves 2(n-1)/n of the buffer in and out
// of each rank; allgather takes n-1.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/message_group.h"

namespace hvd {

// What a rank does in a ring. Transfer k is segment k % segments of step k / segments.
class RingPlan {
 public:
  struct Buffer {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  virtual ~RingPlan() = default;
  virtual size_t segments() const = 0;  // a step; the same on all ranks
  virtual size_t transfers() const = 0;
  virtual Buffer Outgoing(size_t transfer) const = 0;
  // Where transfer `transfer` is received to; up to kRingWindow are under way.
  virtual Buffer Incoming(size_t transfer) = 0;
  virtual void Received(size_t transfer) = 0;
};

inline constexpr size_t kRingWindow = 4;

absl::Status RunRing(MessageGroup& group, RingPlan& plan);

// REQUIRES: the group has begun an operation.
struct RingReduce {
  const ReduceArgs& args;
  ReduceKernel kernel = nullptr;
  int divisor = 1;
  size_t segment_bytes = 0;
};
absl::Status RingAllreduce(MessageGroup& group, const RingReduce& reduce);
absl::Status RingAllgather(MessageGroup& group, const GatherArgs& args, size_t segment_bytes);

}  // namespace hvd
