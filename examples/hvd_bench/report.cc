#include "examples/hvd_bench/report.h"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

double Percentile(const Result& result, size_t percent) {
  const size_t count = result.times_us.size();
  return result.times_us[std::min(count - 1, count * percent / 100)];
}

// Of the median call; 1 GB = 10^9 bytes.
double AlgorithmGBps(const Result& result) {
  return static_cast<double>(result.bytes) / Percentile(result, 50) / 1e3;
}

}  // namespace

std::string TableHead(const std::string& op, const std::string& dtype, int np) {
  char line[256];
  std::snprintf(line, sizeof line,
                "%s of %s, %d ranks; times in us of the slowest rank, values checked\n"
                "%12s %7s %10s %10s %10s %10s %12s %12s",
                op.c_str(), dtype.c_str(), np, "bytes", "calls", "p10", "p50", "p90", "p99",
                "algbw GB/s", "busbw GB/s");
  return line;
}

std::string TableLine(const Result& result) {
  char line[256];
  const double algorithm = AlgorithmGBps(result);
  std::snprintf(line, sizeof line, "%12zu %7zu %10.2f %10.2f %10.2f %10.2f %12.3f %12.3f",
                result.bytes, result.times_us.size(), Percentile(result, 10),
                Percentile(result, 50), Percentile(result, 90), Percentile(result, 99), algorithm,
                algorithm * result.bus_factor);
  return line;
}

std::string JsonLine(const Result& result) {
  char line[512];
  const double algorithm = AlgorithmGBps(result);
  std::snprintf(line, sizeof line,
                "{\"peer\":\"hvd\",\"op\":\"%s\",\"dtype\":\"%s\",\"np\":%d,\"bytes\":%zu,"
                "\"iters\":%zu,\"us_p50\":%.2f,\"us_p10\":%.2f,\"us_p90\":%.2f,\"us_p99\":%.2f,"
                "\"algbw_GBps\":%.3f,\"busbw_GBps\":%.3f}",
                result.op.c_str(), result.dtype.c_str(), result.np, result.bytes,
                result.times_us.size(), Percentile(result, 50), Percentile(result, 10),
                Percentile(result, 90), Percentile(result, 99), algorithm,
                algorithm * result.bus_factor);
  return line;
}

}  // namespace bench
