// SPDX-License-Identifier: Apache-2.0
// The values that the benchmark writes into tensors and expects to find in them afterwards. All
// values are small integers, which every type holds exactly and whose sums do not depend on the
// order: float8 rounds them once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hvd/hvd.h"

namespace bench {

struct Dtype {
  hvd_dtype_t code;
  size_t bytes;  // of an element
  const char* name;
};

// The most bytes that an element of any type has.
inline constexpr size_t kMostBytes = 16;

// All types, in the order in which messages list them.
const std::vector<Dtype>& Dtypes();
std::optional<Dtype> FindDtype(const std::string& name);

// The value that `rank` puts at `index`: 0, 1 or 2, without a period that could hide a misplaced
// slice.
double Pattern(int rank, size_t index);
// Pattern summed over the ranks 0 … size-1 (for bool: "or"), as the type has it.
double PatternSum(const Dtype& dtype, int size, size_t index);

// Writes one element.
void Store(const Dtype& dtype, double value, void* element);
// Writes `value` into each of `count` elements.
void Fill(const Dtype& dtype, double value, void* data, size_t count);
// Reads one element.
double Load(const Dtype& dtype, const void* element);

}  // namespace bench
