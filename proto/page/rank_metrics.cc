// SPDX-License-Identifier: Apache-2.0
#include "proto/page/rank_metrics.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/json.h"

namespace hvd {
namespace {

constexpr const char* kKinds[kMetricKinds] = {
    "other",   "allreduce",       "allgather",          "broadcast",
    "barrier", "leave",           "reducescatter",      "alltoall",
    "join",    "add_process_set", "remove_process_set", "send",
    "recv"};

constexpr size_t kFields = sizeof(RankTotals) / sizeof(uint64_t);
static_assert(sizeof(MetricFields<std::atomic<uint64_t>>) == sizeof(RankTotals));

uint64_t* Flat(RankTotals* totals) { return &totals->calls[0]; }

void AddNumber(const char* name, uint64_t value, Json* json) {
  if (value != 0) (*json)[name] = value;
}

void AddByKind(const char* name, const uint64_t (&values)[kMetricKinds], Json* json) {
  Json kinds;
  for (int kind = 0; kind < kMetricKinds; ++kind) AddNumber(kKinds[kind], values[kind], &kinds);
  if (!kinds.is_null()) (*json)[name] = std::move(kinds);
}

template <size_t kCount>
void AddList(const char* name, const uint64_t (&values)[kCount], Json* json) {
  if (std::any_of(values, values + kCount, [](uint64_t value) { return value != 0; })) {
    (*json)[name] = values;
  }
}

}  // namespace

void RankTotals::Add(const RankMetrics& metrics) {
  const auto* from = reinterpret_cast<const std::atomic<uint64_t>*>(&metrics);
  uint64_t* to = Flat(this);
  for (size_t i = 0; i < kFields; ++i) to[i] += from[i].load(std::memory_order_relaxed);
}

void RankTotals::Add(const RankTotals& other) {
  const auto* from = reinterpret_cast<const uint64_t*>(&other);
  uint64_t* to = Flat(this);
  for (size_t i = 0; i < kFields; ++i) to[i] += from[i];
}

uint64_t RankTotals::all_calls() const {
  return std::accumulate(calls, calls + kMetricKinds, uint64_t{0});
}

uint64_t RankTotals::all_bytes() const {
  return std::accumulate(bytes, bytes + kMetricKinds, uint64_t{0});
}

Json MetricsJson(const RankTotals& totals) {
  Json json = Json::object();
  AddByKind("calls", totals.calls, &json);
  AddByKind("bytes", totals.bytes, &json);
  AddByKind("execute_ns", totals.execute_ns, &json);
  AddNumber("failed", totals.failed, &json);
  AddNumber("waits", totals.waits, &json);
  AddNumber("wait_ns", totals.wait_ns, &json);
  AddList("wait_histogram_log2_us", totals.wait_histogram, &json);
  AddNumber("came_last", totals.came_last, &json);
  AddNumber("batches", totals.batches, &json);
  AddNumber("fused", totals.fused, &json);
  AddList("fusion_fill_tenths", totals.fusion_fill, &json);
  return json;
}

}  // namespace hvd
