// The results as lines: a table for people, JSON for scripts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

struct Result {
  std::string op;
  std::string dtype;
  int np = 0;
  size_t bytes = 0;
  std::vector<double> times_us;  // ascending, not empty
  double bus_factor = 0;
};

std::string TableHead(const std::string& op, const std::string& dtype, int np);
std::string TableLine(const Result& result);
// {"peer":"hvd","op",…,"us_p50","us_p10","us_p90",…,"busbw_GBps"}
std::string JsonLine(const Result& result);

}  // namespace bench
