// SPDX-License-Identifier: Apache-2.0
// The counts that a rank keeps about one process set, in the host's shared memory. Plain loads and
// stores: the writer is whoever executes the set's requests, one thread at a time.
#pragma once

#include <bit>
#include <cstdint>

#include "proto/page/host_page.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

// Returns the bytes of the tensor, or of all tensors of a group; 0 for a request that carries none.
uint64_t InputBytes(const Request& request);

class Metrics {
 public:
  explicit Metrics(const WatchPlace& place)
      : at_(&WatchOf(place.page, place.local_rank).metrics[place.region]) {}

  void Done(RequestKind kind, uint64_t bytes) {
    Add(&at_->calls[static_cast<int>(kind)], 1);
    Add(&at_->bytes[static_cast<int>(kind)], bytes);
  }
  void Failed() { Add(&at_->failed, 1); }
  void Executed(RequestKind kind, int64_t ns) { Add(&at_->execute_ns[static_cast<int>(kind)], ns); }
  // This rank had nothing to do but to wait for others. The rank that waits least is the one that
  // the others wait for.
  void Waited(int64_t ns) {
    Add(&at_->waits, 1);
    Add(&at_->wait_ns, ns);
    const int bucket = std::bit_width(static_cast<uint64_t>(ns) / 1000);
    Add(&at_->wait_histogram[bucket < kWaitBuckets ? bucket : kWaitBuckets - 1], 1);
  }
  void CameLast() { Add(&at_->came_last, 1); }
  // A batch of `tensors` fused ones (1: not fused) with `bytes` of the `threshold` that would fit.
  void Batch(int tensors, uint64_t bytes, uint64_t threshold) {
    Add(&at_->batches, 1);
    if (tensors < 2 || threshold == 0) return;
    Add(&at_->fused, tensors);
    const uint64_t tenth = bytes * kFusionFillBuckets / threshold;
    Add(&at_->fusion_fill[tenth < kFusionFillBuckets ? tenth : kFusionFillBuckets - 1], 1);
  }

 private:
  static void Add(std::atomic<uint64_t>* counter, uint64_t more) {
    counter->store(counter->load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  RankMetrics* const at_;
};

}  // namespace hvd::rt
