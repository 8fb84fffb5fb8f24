// SPDX-License-Identifier: Apache-2.0
// What the ranks of `differential` do, drawn from a seed: the same on every rank. And what comes of
// it, computed one element at a time. Pure.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "bench/hvd_bench/values.h"

namespace differential {

using bench::Dtype;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // 0 to below - 1.
  int64_t Below(int64_t below) { return static_cast<int64_t>(engine_() % below); }
  bool OneIn(int64_t times) { return Below(times) == 0; }
  template <class T>
  const T& Of(const std::vector<T>& choices) {
    return choices[Below(static_cast<int64_t>(choices.size()))];
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

// A process set.
struct Set {
  int32_t id = 0;
  std::vector<int> ranks;  // ascending
  int size() const { return static_cast<int>(ranks.size()); }
  int IndexOf(int rank) const;  // -1: no member
};

enum class Kind {
  kAllreduce,
  kBroadcast,
  kAllgather,
  kReduceScatter,
  kAlltoall,
  kGroupedAllreduce,
  kGroupedAllgather,
  kGroupedReduceScatter,
};
inline constexpr int kKinds = 8;

// All have two dimensions.
struct Tensor {
  Dtype dtype;
  int64_t columns = 1;
  std::vector<int64_t> rows;  // by member: of its input
};

struct Operation {
  int number = 0;  // of the seed's
  Kind kind = Kind::kAllreduce;
  Set set;
  std::string name;  // empty: unnamed
  std::vector<Tensor> tensors;
  int op = HVD_AVERAGE;
  double prescale = 1, postscale = 1;
  int compression = HVD_COMPRESSION_NONE;
  int flags = 0;
  int root = 0;                              // global rank
  std::vector<std::vector<int64_t>> splits;  // by member: its own
  std::vector<bool> takes_part;              // by member; the others join before it
  bool on_gpu = false;                       // where its tensors lie

  bool reduces() const;
  bool is_group() const;
  // Whether hvd may allocate its results.
  bool may_allocate() const;
  int64_t OutputRows(size_t tensor, int member) const;
};

struct DrawOptions {
  int number = 0;
  bool beside_joins = false;  // some of its members may have joined
  bool may_be_unnamed = false;
};
Operation Draw(const DrawOptions& options, const std::vector<Set>& sets, Random* random);

std::string Describe(const Operation& operation);

// Returns what `rank` has in its input.
double InputValue(const Operation& operation, size_t tensor, int rank, size_t element);
// The value that a member gets, and how far off it may be.
struct Wanted {
  double value = 0;
  double tolerance = 0;
};
Wanted OutputValue(const Operation& operation, size_t tensor, int member, size_t element);

}  // namespace differential
