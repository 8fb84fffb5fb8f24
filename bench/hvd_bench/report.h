// SPDX-License-Identifier: Apache-2.0
// The results as lines: a table for people, JSON for scripts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Result {
  std::string op;
  std::string dtype;
  std::string buffers;  // "user", "arena", "views" or "cuda"
  std::string mode;     // "blocking" or "async"
  int np = 0;
  size_t bytes = 0;
  std::vector<double> times_us;  // ascending, not empty
  double bus_factor = 0;
  // For tensors on GPUs: a call among many that follow one another on a stream; NCCL's own.
  std::optional<double> in_flight_us, raw_us;
  bool beside_raw = false;
  std::string refusal;  // why there is no call of NCCL's own; empty: it was not asked for, or is
};

double Median(const std::vector<double>& ascending);

std::string TableHead(const Result& result);  // times are not looked at
std::string TableLine(const Result& result);
// A further line of the table, for each line that has them; empty: nothing was refused.
std::string RefusalLine(const Result& result);
// {"peer":"hvd","op",…,"us_p50","us_p10","us_p90",…,"busbw_GBps"}; `more` is ',"key":value…' or
// empty.
std::string JsonLine(const Result& result, const std::string& more);

}  // namespace bench
