// SPDX-License-Identifier: Apache-2.0
// A ring in a pipeline: in every step a rank passes a slice on to its right neighbour and takes one
// from its left. Slices are cut in segments; segment s of step t+1 needs only segment s of step t,
// so with two or more segments there is always one on the wire while another is worked on.
//
// Allreduce takes 2(n-1) steps (the first n-1 reduce) and moves 2(n-1)/n of the buffer in and out
// of each rank; reduce-scatter and allgather take n-1.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/collective/message/reduce.h"
#include "runtime/collective/message/run.h"

namespace hvd::rt {

// A range of a buffer.
struct Extent {
  size_t begin = 0;
  size_t count = 0;
};

// The transfers of a rank in a ring. Transfer k is segment k % segments of step k / segments.
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
  // Where transfer `transfer` is received to; up to a window are under way.
  virtual Buffer Incoming(size_t transfer) = 0;
  virtual void Received(size_t transfer) = 0;
};

// How much of a ring is on the wire at a time.
struct RingPace {
  size_t segment_bytes = 0;  // up to four times as many where slices are large
  size_t window = 1;         // segments; at most kMaxRingWindow
};
inline constexpr size_t kMaxRingWindow = 16;

class RingRun : public MessageRun {
 public:
  // Belongs to the operation that the group is in.
  RingRun(MessageGroup* group, std::unique_ptr<RingPlan> plan, size_t window);

 protected:
  absl::StatusOr<bool> Advance() override;
  bool IsComplete() const override { return received_ == total_ && sent_ == total_; }

 private:
  absl::Status Post();  // what can be begun

  MessageGroup* const group_;
  const uint32_t step_;
  const std::unique_ptr<RingPlan> plan_;
  const size_t total_;
  const size_t window_;
  MessageGroup::Request sends_[kMaxRingWindow];
  MessageGroup::Request receives_[kMaxRingWindow];
  size_t posted_ = 0;    // receives begun
  size_t received_ = 0;  // and done
  size_t started_ = 0;   // sends begun
  size_t sent_ = 0;      // and done
};

// REQUIRES for all: size() > 1. The buffers must live until the run is finished or destroyed.
std::unique_ptr<MessageRun> RingAllreduce(MessageGroup* group, const MessageReduce& reduce,
                                          const RingPace& pace);
// Rank r's slice of the input is slices[r] (elements); its result goes to the output's begin.
std::unique_ptr<MessageRun> RingReduceScatter(MessageGroup* group, const MessageReduce& reduce,
                                              std::vector<Extent> slices, const RingPace& pace);
// Everyone's bytes lie at parts[rank] of the buffer; this rank's are there already.
std::unique_ptr<MessageRun> RingAllgather(MessageGroup* group, std::byte* buffer,
                                          std::vector<Extent> parts, const RingPace& pace);

}  // namespace hvd::rt
