// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/on_gpu.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "bench/device/gpu_memory.h"
#include "bench/hvd_bench/measure.h"
#include "bench/hvd_bench/report.h"
#include "hvd/hvd.hpp"

namespace bench {
namespace {

constexpr int kCallsInFlight = 20;
constexpr int kRounds = 7;

void AwaitGpu() {
  gpu::Side& side = gpu::Side::Get();
  side.Await(side.stream(kStream));
}

// Returns the time of one call among many that follow one another on the stream. The host waits
// once, at the end.
double TimeInFlight(const std::function<void()>& call) {
  const double all = SlowestRank([&call] {
    for (int i = 0; i < kCallsInFlight; ++i) call();
    AwaitGpu();
  });
  return all / kCallsInFlight;
}

gpu::RawNccl::Call CallOf(const Plan& plan, const Collective& collective) {
  const Collective::Ends ends = collective.ends();
  gpu::RawNccl::Call call;
  call.op = plan.op;
  call.dtype = plan.dtype.code;
  call.bytes_of_element = plan.dtype.bytes;
  call.from = ends.from->tensor()->data;
  call.from_count = ends.from->count();
  call.to = ends.to->tensor()->data;
  call.to_count = ends.to->count();
  return call;
}

double MedianOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return Median(times);
}

// One checked call, to begin with: what comes first is slow, or wrong.
void TryOnce(const std::function<void()>& call, Collective* collective) {
  collective->FillPattern();
  call();
  AwaitGpu();
  collective->CheckAll();
}

}  // namespace

void RequireGpu() { gpu::CountGpus(); }

GpuOfRank::GpuOfRank() { gpu::Side::Open(hvd::local_rank() % gpu::CountGpus()); }

GpuTimes MeasureOnGpu(int iterations, const Plan& plan, Collective* collective, gpu::RawNccl* raw) {
  GpuTimes times;
  times.blocking_us = Measure(iterations, collective);
  const gpu::RawNccl::Call call = CallOf(plan, *collective);
  if (raw != nullptr) times.refusal = raw->Refusal(call);
  const bool has_raw = raw != nullptr && times.refusal.empty();
  const auto by_hvd = [collective] { collective->Run(); };
  const auto by_raw = [&] { raw->Launch(call, gpu::Side::Get().stream(kStream)); };

  collective->WaitOnHost(false);
  TryOnce(by_hvd, collective);
  if (has_raw) TryOnce(by_raw, collective);
  std::vector<double> in_flight, raw_in_flight;
  for (int round = 0; round < kRounds; ++round) {
    collective->FillAlike();
    in_flight.push_back(TimeInFlight(by_hvd));
    if (!has_raw) continue;
    collective->FillAlike();
    raw_in_flight.push_back(TimeInFlight(by_raw));
  }
  collective->WaitOnHost(true);
  times.in_flight_us = MedianOf(std::move(in_flight));
  if (has_raw) times.raw_us = MedianOf(std::move(raw_in_flight));
  ThrowIfError(hvd_check());
  return times;
}

}  // namespace bench
