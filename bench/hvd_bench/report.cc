#include "bench/hvd_bench/report.h"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

double Percentile(const std::vector<double>& ascending, size_t percent) {
  return ascending[std::min(ascending.size() - 1, ascending.size() * percent / 100)];
}

// Of the median call; 1 GB = 10^9 bytes.
double AlgorithmGBps(const Result& result) {
  return static_cast<double>(result.bytes) / Median(result.times_us) / 1e3;
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
  return line;
}

std::string TableLine(const Result& result) {
  char line[256];
  const std::vector<double>& times = result.times_us;
  const double algorithm = AlgorithmGBps(result);
  std::snprintf(line, sizeof line, "%12zu %7zu %10.2f %10.2f %10.2f %10.2f %12.3f %12.3f",
                result.bytes, times.size(), Percentile(times, 10), Percentile(times, 50),
                Percentile(times, 90), Percentile(times, 99), algorithm,
                algorithm * result.bus_factor);
  return line;
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
  return line + more + "}";
}

}  // namespace bench
