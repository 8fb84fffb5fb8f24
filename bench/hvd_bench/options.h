// SPDX-License-Identifier: Apache-2.0
// The command line of hvd-bench.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::string op;
  std::vector<size_t> sizes = {4, 256, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
  std::string dtype = "float32";
  std::string buffers = "user";  // or "arena"
  std::string device = "cpu";    // or "cuda"
  std::string raw;               // "nccl": beside hvd; empty: nothing
  int iterations = 0;            // 0: by size
  double seconds = 5;            // of idle and late
  bool async = false, named = true, views = false;
  bool json = false;
};

// Beside the collectives.
constexpr const char* kGradients = "gradients";
constexpr const char* kOverlap = "overlap";
constexpr const char* kIdle = "idle";
constexpr const char* kLate = "late";

// Nothing: it has been answered (--help) or refused, and `exit_code` is set.
std::optional<Options> ParseOptions(int argc, char** argv, int* exit_code);

}  // namespace bench
