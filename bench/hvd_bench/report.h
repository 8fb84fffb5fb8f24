// The results as lines: a table for people, JSON for scripts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

struct Result {
  std::string op;
  std::string dtype;
  std::string buffers;  // "user", "arena" or "views"
  std::string mode;     // "blocking" or "async"
  int np = 0;
  size_t bytes = 0;
  std::vector<double> times_us;  // ascending, not empty
  double bus_factor = 0;
};

double Median(const std::vector<double>& ascending);

std::string TableHead(const Result& result);  // times are not looked at
std::string TableLine(const Result& result);
// {"peer":"hvd","op",…,"us_p50","us_p10","us_p90",…,"busbw_GBps"}; `more` is ',"key":value…' or
// empty.
std::string JsonLine(const Result& result, const std::string& more);

}  // namespace bench
