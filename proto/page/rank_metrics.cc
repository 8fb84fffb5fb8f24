#include "proto/page/rank_metrics.h"

#include <algorithm>
#include <numeric>
#include <string_view>

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

void Field(std::string_view name, const std::string& value, std::string* json) {
  if (value.empty()) return;
  if (json->size() > 1) *json += ',';
  json->append("\"").append(name).append("\":").append(value);
}

std::string Number(uint64_t value) { return value == 0 ? "" : std::to_string(value); }

std::string ByKind(const uint64_t (&values)[kMetricKinds]) {
  std::string json = "{";
  for (int kind = 0; kind < kMetricKinds; ++kind) Field(kKinds[kind], Number(values[kind]), &json);
  return json == "{" ? "" : json + "}";
}

template <size_t kCount>
std::string List(const uint64_t (&values)[kCount]) {
  if (std::all_of(values, values + kCount, [](uint64_t value) { return value == 0; })) return "";
  std::string json = "[";
  for (size_t i = 0; i < kCount; ++i) json += (i ? "," : "") + std::to_string(values[i]);
  return json + "]";
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

std::string MetricsJson(const RankTotals& totals) {
  std::string json = "{";
  Field("calls", ByKind(totals.calls), &json);
  Field("bytes", ByKind(totals.bytes), &json);
  Field("execute_ns", ByKind(totals.execute_ns), &json);
  Field("failed", Number(totals.failed), &json);
  Field("waits", Number(totals.waits), &json);
  Field("wait_ns", Number(totals.wait_ns), &json);
  Field("wait_histogram_log2_us", List(totals.wait_histogram), &json);
  Field("came_last", Number(totals.came_last), &json);
  Field("batches", Number(totals.batches), &json);
  Field("fused", Number(totals.fused), &json);
  Field("fusion_fill_tenths", List(totals.fusion_fill), &json);
  return json + "}";
}

}  // namespace hvd
