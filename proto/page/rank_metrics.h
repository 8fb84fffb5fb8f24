// SPDX-License-Identifier: Apache-2.0
// What a rank counts about itself: in the epoch's shared memory, so that hvdd reads it without
// asking, also when the rank is dead.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace hvd {

inline constexpr int kWatchedSets = 64;
inline constexpr int kMetricKinds = 13;  // by the engine's number of a request's kind
inline constexpr int kWaitBuckets = 24;  // < 1 µs, < 2 µs, < 4 µs, … ; the last: all longer
inline constexpr int kFusionFillBuckets = 10;  // tenths of the fusion threshold

// Counters in the order in which they are stored; all are sums.
template <class Counter>
struct MetricFields {
  Counter calls[kMetricKinds];       // finished
  Counter bytes[kMetricKinds];       // of this rank's input
  Counter execute_ns[kMetricKinds];  // in execution
  Counter failed;                    // calls that ended with an error
  Counter waits;                     // times this rank waited for others
  Counter wait_ns;
  Counter wait_histogram[kWaitBuckets];
  Counter came_last;  // times this rank's submission was the one that the others waited for
  Counter batches;    // executed
  Counter fused;      // tensors that went together with others
  Counter fusion_fill[kFusionFillBuckets];
};

// One writer at a time: who executes the process set's requests. Zeroed memory is empty.
struct alignas(64) RankMetrics : MetricFields<std::atomic<uint64_t>> {};

// The same as values.
struct RankTotals : MetricFields<uint64_t> {
  void Add(const RankMetrics& metrics);
  void Add(const RankTotals& other);
  uint64_t all_calls() const;
  uint64_t all_bytes() const;
};

// {"calls":{"allreduce":12},…}; what is zero is left out.
nlohmann::ordered_json MetricsJson(const RankTotals& totals);

}  // namespace hvd
