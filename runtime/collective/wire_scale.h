// SPDX-License-Identifier: Apache-2.0
// float16 sums between hosts: they travel as float16, whose largest number is 65504.
#pragma once

#include <algorithm>
#include <cmath>

#include "hvd/hvd.h"

namespace hvd::rt {

template <class Args>
int DivisorOf(const Args& args, int size) {
  if (args.op != HVD_AVERAGE) return 1;
  return args.divisor != 0 ? args.divisor : size;
}

// Returns the factor that makes a sum smaller before it travels: a power of two, so that the scaled
// sum is as large as the result, or up to twice smaller. The scaled sum therefore overflows only
// where the result does, and is rounded as finely as the result. 1 where the result is not smaller
// than the sum, and for other types: they hold as much between hosts as within. The rest of
// postscale and divisor then needs no more. `Args`: ReduceArgs or ReduceScatterArgs, of a group of
// `size`.
template <class Args>
double WireScale(const Args& args, int size) {
  if (args.dtype != HVD_FLOAT16 || (args.op != HVD_SUM && args.op != HVD_AVERAGE)) return 1;
  constexpr int kLeast = -64;  // all float16 numbers are nothing then
  int exponent = 0;
  std::frexp(args.postscale / DivisorOf(args, size), &exponent);
  return std::ldexp(1.0, std::clamp(exponent - 1, kLeast, 0));
}

}  // namespace hvd::rt
