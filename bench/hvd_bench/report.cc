// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/report.h"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

double Percentile(const std::vector<double>& ascending, size_t percent) {
  return ascending[std::min(ascending.size() - 1, ascending.size() * percent / 100)];
}

// 1 GB = 10^9 bytes.
double GBps(const Result& result, double us) {
  return static_cast<double>(result.bytes) / us / 1e3;
}

double AlgorithmGBps(const Result& result) { return GBps(result, Median(result.times_us)); }

// The columns of tensors on GPUs.
std::string GpuColumns(const Result& result) {
  if (!result.in_flight_us) return "";
  char text[96];
  std::snprintf(text, sizeof text, " %12.2f %12.3f", *result.in_flight_us,
                GBps(result, *result.in_flight_us) * result.bus_factor);
  std::string line = text;
  if (!result.raw_us) return line;
  std::snprintf(text, sizeof text, " %12.2f %8.3f", *result.raw_us,
                *result.raw_us / *result.in_flight_us);
  return line + text;
}

std::string GpuJson(const Result& result) {
  if (!result.in_flight_us) return "";
  char text[160];
  std::snprintf(text, sizeof text, ",\"in_flight_us\":%.2f,\"in_flight_busbw_GBps\":%.3f",
                *result.in_flight_us, GBps(result, *result.in_flight_us) * result.bus_factor);
  std::string line = text;
  if (!result.refusal.empty()) line += ",\"raw_nccl_refusal\":\"" + result.refusal + "\"";
  if (!result.raw_us) return line;
  std::snprintf(text, sizeof text,
                ",\"raw_nccl_us\":%.2f,\"raw_nccl_busbw_GBps\":%.3f,\"ratio\":%.3f", *result.raw_us,
                GBps(result, *result.raw_us) * result.bus_factor,
                *result.raw_us / *result.in_flight_us);
  return line + text;
}

}  // namespace

double Median(const std::vector<double>& ascending) { return Percentile(ascending, 50); }

std::string TableHead(const Result& result) {
  char line[256];
  std::snprintf(line, sizeof line,
                "%s of %s, %d ranks, %s calls, %s buffers; times in us of the slowest rank, values "
                "checked\n%12s %7s %10s %10s %10s %10s %12s %12s",
                result.op.c_str(), result.dtype.c_str(), result.np, result.mode.c_str(),
                result.buffers.c_str(), "bytes", "calls", "p10", "p50", "p90", "p99", "algbw GB/s",
                "busbw GB/s");
  const bool on_gpu = result.buffers == "cuda" && result.op != "gradients";
  std::string head = line;
  if (on_gpu) head += "    in flight   busbw GB/s";
  return result.beside_raw ? head + "     raw NCCL  hvd/raw" : head;
}

std::string TableLine(const Result& result) {
  char line[256];
  const std::vector<double>& times = result.times_us;
  const double algorithm = AlgorithmGBps(result);
  std::snprintf(line, sizeof line, "%12zu %7zu %10.2f %10.2f %10.2f %10.2f %12.3f %12.3f",
                result.bytes, times.size(), Percentile(times, 10), Percentile(times, 50),
                Percentile(times, 90), Percentile(times, 99), algorithm,
                algorithm * result.bus_factor);
  return line + GpuColumns(result);
}

std::string RefusalLine(const Result& result) {
  return result.refusal.empty() ? "" : "             no raw NCCL: " + result.refusal;
}

std::string JsonLine(const Result& result, const std::string& more) {
  char line[512];
  const std::vector<double>& times = result.times_us;
  const double algorithm = AlgorithmGBps(result);
  std::snprintf(line, sizeof line,
                "{\"peer\":\"hvd\",\"op\":\"%s\",\"dtype\":\"%s\",\"buffers\":\"%s\",\"mode\":"
                "\"%s\",\"np\":%d,\"bytes\":%zu,\"iters\":%zu,\"us_p50\":%.2f,\"us_p10\":%.2f,"
                "\"us_p90\":%.2f,\"us_p99\":%.2f,\"algbw_GBps\":%.3f,\"busbw_GBps\":%.3f",
                result.op.c_str(), result.dtype.c_str(), result.buffers.c_str(),
                result.mode.c_str(), result.np, result.bytes, times.size(), Percentile(times, 50),
                Percentile(times, 10), Percentile(times, 90), Percentile(times, 99), algorithm,
                algorithm * result.bus_factor);
  return line + GpuJson(result) + more + "}";
}

}  // namespace bench
