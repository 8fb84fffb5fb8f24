// SPDX-License-Identifier: Apache-2.0
// Scaled integers and averages of integers, as the kernels compute them and whoever sums integers
// in another way.
#pragma once

#include <cstdint>

namespace hvd::rt {

__extension__ typedef __int128 Int128;

// Scaled in double and truncated; beyond int64 it stays at its ends, NaN becomes 0, and the rest
// wraps.
inline __attribute__((always_inline)) int64_t TruncateScaled(double x) {
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return x == x ? static_cast<int64_t>(x) : 0;
}

// The same as a T. A uint64 holds what lies beyond int64, up to its own end.
template <class T>
inline __attribute__((always_inline)) T TruncateAs(double x) {
  return static_cast<T>(TruncateScaled(x));
}
template <>
inline __attribute__((always_inline)) uint64_t TruncateAs<uint64_t>(double x) {
  if (x >= 0x1p64) return UINT64_MAX;
  if (x >= 0x1p63) return static_cast<uint64_t>(x);
  return static_cast<uint64_t>(TruncateScaled(x));
}

// Truncated towards zero. In double a quotient is exact enough: of what is below 2^53 it is never
// rounded up to an integer. Doubles are divided several at a time, integers are not.
inline __attribute__((always_inline)) int32_t Divide(int32_t sum, int divisor) {
  return static_cast<int32_t>(static_cast<double>(sum) / divisor);
}
// REQUIRES: |sum| + divisor < 2^53.
inline __attribute__((always_inline)) int64_t Divide(int64_t sum, int divisor) {
  return static_cast<int64_t>(static_cast<double>(sum) / divisor);
}
inline __attribute__((always_inline)) int64_t Divide(Int128 sum, int divisor) {
  const auto narrow = static_cast<int64_t>(sum);
  return narrow == sum ? narrow / divisor : static_cast<int64_t>(sum / divisor);
}

// The type that holds a sum of T's without wrapping: of any host's, and of any job's.
template <class T>
struct SumOfInts {
  typedef int32_t Type;
};
template <>
struct SumOfInts<int32_t> {
  typedef int64_t Type;
};
template <>
struct SumOfInts<int64_t> {
  typedef Int128 Type;
};
template <>
struct SumOfInts<uint16_t> {
  typedef int64_t Type;
};
template <>
struct SumOfInts<uint32_t> {
  typedef int64_t Type;
};
template <>
struct SumOfInts<uint64_t> {
  typedef Int128 Type;
};

template <class T, class Sum>
inline __attribute__((always_inline)) T AverageOf(Sum sum, double postscale, int divisor) {
  if (postscale != 1) {
    return TruncateAs<T>(static_cast<double>(sum) * postscale / divisor);
  }
  return static_cast<T>(Divide(sum, divisor));
}

}  // namespace hvd::rt
