// SPDX-License-Identifier: Apache-2.0
// Elementwise reductions of several buffers into one or more, for every type and operation, at the
// best instruction level this processor has. (Rarer types and the bitwise operations are the same
// at all levels: plain/.)
//
// The result depends on the elements alone: sources are combined in order (((s0+s1)+s2)+...), an
// element's bits depend neither on where it lies nor on how long the buffers are, and all levels
// give the same. float16 and bfloat16 are combined in float32, float8 in float64, and rounded once
// (to nearest even). Before and after a scale that is no power of two, float16 and bfloat16 have no
// more digits than in memory, so that postscale gives what a multiplication of the result would.
// A NaN among the sources makes the result NaN, for MIN and MAX too, and always the same NaN.
// Integers wrap, but for the sums of their averages. A program's settings for float arithmetic do
// not matter (float_rules.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "hvd/hvd.h"

namespace hvd::rt {

struct ReduceTask {
  const void* const* sources = nullptr;
  int source_count = 0;  // at least 1
  // Each gets the result. One may be a source; otherwise there is no overlap.
  void* const* destinations = nullptr;
  int destination_count = 0;
  size_t count = 0;  // elements
  int divisor = 1;   // for averages: what the combined value is divided by
  // result = postscale * op(prescale * each) / divisor. Floats: in the type that they are combined
  // in. Integers: in double, truncated. Bool and bitwise operations: 1.
  double prescale = 1.0;
  double postscale = 1.0;
  int prescaled = 0;  // so many of the first sources have been multiplied by prescale already
};

using ReduceKernel = void (*)(const ReduceTask& task);

enum class KernelLevel { kBaseline, kAvx2, kAvx512 };

KernelLevel BestKernelLevel();
// "avx512"
inline std::string_view KernelLevelName(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return "avx512";
    case KernelLevel::kAvx2:
      return "avx2";
    case KernelLevel::kBaseline:
      break;
  }
  return "baseline";
}

// AVERAGE is SUM with the task's divisor; of integers the sum never wraps. Null where there is no
// such reduction (CheckReduction says why).
// REQUIRES: level <= BestKernelLevel().
ReduceKernel FindReduceKernel(hvd_dtype_t dtype, hvd_op_t op, KernelLevel level);

}  // namespace hvd::rt
