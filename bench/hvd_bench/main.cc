// SPDX-License-Identifier: Apache-2.0
// Measures hvd's collectives.
//   hvdrun -np 2 build/bin/hvd-bench allreduce --sizes 4,65536,16777216
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bench/hvd_bench/behaviour.h"
#include "bench/hvd_bench/collective.h"
#include "bench/hvd_bench/gradients.h"
#include "bench/hvd_bench/measure.h"
#include "bench/hvd_bench/on_gpu.h"
#include "bench/hvd_bench/options.h"
#include "bench/hvd_bench/report.h"
#include "bench/hvd_bench/values.h"
#include "hvd/hvd.hpp"

namespace bench {
namespace {

constexpr int kNoGpu = 2;  // as a wrong option
constexpr int kSteps = 20;
constexpr int kOverlapSteps = 5;

void PrintOnRank0(const std::string& line) {
  if (hvd::rank() != 0) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

bool IsOnGpu(const Options& options) { return options.device == "cuda"; }

Result Empty(const Options& options) {
  Result result;
  result.op = options.op;
  result.dtype = options.dtype;
  result.buffers = options.views ? "views" : options.buffers;
  if (IsOnGpu(options)) result.buffers = options.device;
  const bool async = options.async || options.op == kGradients || options.op == kOverlap;
  result.mode = async ? "async" : "blocking";
  result.np = hvd::size();
  return result;
}

Memory MemoryOf(const Options& options) {
  if (IsOnGpu(options)) return Memory::kGpu;
  return options.buffers == "arena" ? Memory::kArena : Memory::kUser;
}

// Fills in the times of one size.
void MeasureSize(const Options& options, size_t bytes, gpu::RawNccl* raw, Result* result) {
  const Plan plan{options.op,   *FindDtype(options.dtype), bytes, MemoryOf(options), options.async,
                  options.named};
  const auto collective = MakeCollective(plan);
  const int iterations = options.iterations > 0 ? options.iterations : IterationsFor(bytes);
  result->bytes = collective->bytes();
  result->bus_factor = collective->bus_factor();
  if (!IsOnGpu(options)) {
    result->times_us = Measure(iterations, collective.get());
    return;
  }
  GpuTimes times = MeasureOnGpu(iterations, plan, collective.get(), raw);
  result->times_us = std::move(times.blocking_us);
  result->in_flight_us = times.in_flight_us;
  result->raw_us = times.raw_us;
  result->refusal = std::move(times.refusal);
}

void RunSizes(const Options& options) {
  std::unique_ptr<gpu::RawNccl> raw;
  if (!options.raw.empty()) raw = std::make_unique<gpu::RawNccl>();
  Result result = Empty(options);
  result.beside_raw = raw != nullptr;
  if (!options.json) PrintOnRank0(TableHead(result));
  for (const size_t bytes : options.sizes) {
    MeasureSize(options, bytes, raw.get(), &result);
    PrintOnRank0(options.json ? JsonLine(result, "") : TableLine(result));
    if (!options.json && !result.refusal.empty()) PrintOnRank0(RefusalLine(result));
  }
}

void RunGradients(const Options& options) {
  GradientsPlan plan{*FindDtype(options.dtype), MemoryOf(options), options.views};
  plan.steps = options.iterations > 0 ? options.iterations : kSteps;
  const GradientsResult measured = MeasureGradients(plan);
  Result result = Empty(options);
  result.bytes = measured.bytes;
  result.bus_factor = 2.0 * (hvd::size() - 1) / hvd::size();
  result.times_us = measured.steps_us;
  const double whole = Median(measured.contiguous_us), ratio = whole / Median(result.times_us);
  char text[160];
  if (options.json) {
    std::snprintf(text, sizeof text,
                  ",\"test\":\"resnet50-gradients\",\"tensors\":%zu,\"contiguous_us_p50\":%.2f,"
                  "\"ratio\":%.3f",
                  measured.tensors, whole, ratio);
    result.op = "allreduce";
    return PrintOnRank0(JsonLine(result, text));
  }
  std::snprintf(text, sizeof text, "%zu tensors; one call of the same size: p50 %.2f, ratio %.3f",
                measured.tensors, whole, ratio);
  PrintOnRank0(TableHead(result) + "\n" + TableLine(result) + "\n" + text);
}

void RunOverlap(const Options& options) {
  for (const size_t bytes : options.sizes) {
    const Plan plan{"allreduce",  *FindDtype(options.dtype), bytes, MemoryOf(options), true,
                    options.named};
    const Overlap measured =
        MeasureOverlap(plan, options.iterations > 0 ? options.iterations : kOverlapSteps);
    Result result = Empty(options);
    result.bytes = bytes;
    result.times_us = measured.both_us;
    result.bus_factor = 2.0 * (hvd::size() - 1) / hvd::size();
    const double ratio =
        Median(result.times_us) / std::max(measured.compute_us, measured.communicate_us);
    char text[160];
    std::snprintf(text, sizeof text,
                  options.json
                      ? ",\"compute_us\":%.2f,\"communicate_us\":%.2f,\"ratio\":%.3f"
                      : "computing alone %.2f, communicating alone %.2f; both / the longer %.3f",
                  measured.compute_us, measured.communicate_us, ratio);
    PrintOnRank0(options.json ? JsonLine(result, text)
                              : TableHead(result) + "\n" + TableLine(result) + "\n" + text);
  }
}

void RunWaiting(const Options& options) {
  const Usage usage =
      options.op == kIdle ? MeasureIdle(options.seconds) : MeasureLate(options.seconds);
  char text[160];
  std::snprintf(text, sizeof text,
                options.json ? "{\"peer\":\"hvd\",\"op\":\"%s\",\"np\":%d,\"seconds\":%.1f,"
                               "\"percent\":%.3f}"
                             : "%s, %d ranks, %.1f s: at most %.3f %% of a core a rank",
                options.op.c_str(), hvd::size(), usage.seconds, usage.percent);
  PrintOnRank0(text);
}

void Run(const Options& options) {
  std::optional<GpuOfRank> gpu;
  if (IsOnGpu(options)) gpu.emplace();
  if (options.op == kGradients) return RunGradients(options);
  if (options.op == kOverlap) return RunOverlap(options);
  if (options.op == kIdle || options.op == kLate) return RunWaiting(options);
  RunSizes(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto options = bench::ParseOptions(argc, argv, &exit_code);
  if (!options) return exit_code;
  try {
    if (bench::IsOnGpu(*options)) bench::RequireGpu();
  } catch (const gpu::Problem& problem) {
    std::fprintf(stderr, "hvd-bench: --device cuda: there is no GPU to use here: %s\n",
                 problem.what());
    return bench::kNoGpu;
  }
  try {
    hvd::Session session;
    bench::Run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvd-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
