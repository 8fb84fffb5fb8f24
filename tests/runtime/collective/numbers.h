// SPDX-License-Identifier: Apache-2.0
// The reference's view of every element type: encode and decode by arithmetic on doubles, apart
// from the kernels' ways.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "hvd/hvd.h"

namespace hvd::rt::test {

inline constexpr hvd_dtype_t kAllDtypes[] = {
    HVD_UINT8,   HVD_INT8,      HVD_INT16,      HVD_INT32,         HVD_INT64,      HVD_FLOAT16,
    HVD_FLOAT32, HVD_FLOAT64,   HVD_BOOL,       HVD_BFLOAT16,      HVD_UINT16,     HVD_UINT32,
    HVD_UINT64,  HVD_COMPLEX64, HVD_COMPLEX128, HVD_FLOAT8_E4M3FN, HVD_FLOAT8_E5M2};
inline constexpr hvd_op_t kAllOps[] = {HVD_AVERAGE, HVD_SUM,  HVD_MIN, HVD_MAX,
                                       HVD_PRODUCT, HVD_BAND, HVD_BOR, HVD_BXOR};

// Complex numbers are floats here, whose imaginary part is 0; complex_test.cc has others.
inline bool IsFloat(hvd_dtype_t dtype) {
  switch (dtype) {
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
    case HVD_FLOAT32:
    case HVD_FLOAT64:
    case HVD_FLOAT8_E4M3FN:
    case HVD_FLOAT8_E5M2:
    case HVD_COMPLEX64:
    case HVD_COMPLEX128:
      return true;
    default:
      return false;
  }
}
inline bool IsSigned(hvd_dtype_t dtype) {
  return dtype != HVD_UINT8 && dtype != HVD_UINT16 && dtype != HVD_UINT32 && dtype != HVD_UINT64 &&
         dtype != HVD_BOOL;
}
inline bool IsBits(hvd_op_t op) { return op == HVD_BAND || op == HVD_BOR || op == HVD_BXOR; }

// Whether there is such a reduction, and whether it can be scaled.
inline bool Exists(hvd_dtype_t dtype, hvd_op_t op) {
  const bool complex = dtype == HVD_COMPLEX64 || dtype == HVD_COMPLEX128;
  if (complex && (op == HVD_MIN || op == HVD_MAX)) return false;
  if (IsFloat(dtype) && IsBits(op)) return false;
  return dtype != HVD_BOOL || op != HVD_AVERAGE;
}
inline bool IsScalable(hvd_dtype_t dtype, hvd_op_t op) {
  return Exists(dtype, op) && dtype != HVD_BOOL && !IsBits(op);
}

// A binary float of `exponent_bits` and `fraction_bits`, rounded to nearest even.
inline uint16_t EncodeSmall(double value, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint16_t infinity = ((1 << exponent_bits) - 1) << fraction_bits;
  if (std::isnan(value)) return sign | infinity | (1 << (fraction_bits - 1));
  value = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  const int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
  const double units = std::nearbyint(std::ldexp(value, fraction_bits - exponent));
  const double bits = units + std::ldexp(exponent + bias - 1, fraction_bits);
  return sign | (bits >= infinity ? infinity : static_cast<uint16_t>(bits));
}
inline double DecodeSmall(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

// Its largest exponent has numbers too, and one NaN.
inline double DecodeE4m3fn(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  const uint16_t moved = static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f));
  return DecodeSmall(moved, 5, 3) * 256;  // a wider exponent leaves nothing special
}
// The nearest of all numbers, also of what is too large; of two, the even one.
inline uint8_t EncodeE4m3fn(double value) {
  static const auto all = [] {
    std::array<double, 0x7f> positive{};
    for (uint8_t bits = 0; bits < 0x7f; ++bits) positive[bits] = DecodeE4m3fn(bits);
    return positive;
  }();
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  value = std::min(std::fabs(value), all.back());
  const auto above =
      static_cast<uint8_t>(std::lower_bound(all.begin(), all.end(), value) - all.begin());
  if (all[above] == value) return sign | above;
  const double middle = (all[above - 1] + all[above]) / 2;
  const bool up = value > middle || (value == middle && above % 2 == 0);
  return sign | (up ? above : static_cast<uint8_t>(above - 1));
}
inline double DecodeE5m2(uint8_t bits) {
  return DecodeSmall(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f)), 5, 2);
}
inline uint8_t EncodeE5m2(double value) {
  const uint16_t bits = EncodeSmall(value, 5, 2);
  return static_cast<uint8_t>((bits >> 8 & 0x80) | (bits & 0x7f));
}

template <class T>
void Put(void* to, T value) {
  memcpy(to, &value, sizeof(value));
}
template <class T>
double Get(const void* from) {
  T value;
  memcpy(&value, from, sizeof(value));
  return static_cast<double>(value);
}

inline void Encode(hvd_dtype_t dtype, double value, void* to) {
  switch (dtype) {
    case HVD_UINT8:
    case HVD_BOOL:
      return Put(to, static_cast<uint8_t>(value));
    case HVD_INT8:
      return Put(to, static_cast<int8_t>(value));
    case HVD_INT16:
      return Put(to, static_cast<int16_t>(value));
    case HVD_INT32:
      return Put(to, static_cast<int32_t>(value));
    case HVD_INT64:
      return Put(to, static_cast<int64_t>(value));
    case HVD_FLOAT32:
      return Put(to, static_cast<float>(value));
    case HVD_FLOAT64:
      return Put(to, value);
    case HVD_FLOAT16:
      return Put(to, EncodeSmall(value, 5, 10));
    case HVD_BFLOAT16:
      return Put(to, EncodeSmall(value, 8, 7));
    case HVD_UINT16:
      return Put(to, static_cast<uint16_t>(value));
    case HVD_UINT32:
      return Put(to, static_cast<uint32_t>(value));
    case HVD_UINT64:
      return Put(to, static_cast<uint64_t>(value));
    case HVD_FLOAT8_E4M3FN:
      return Put(to, EncodeE4m3fn(value));
    case HVD_FLOAT8_E5M2:
      return Put(to, EncodeE5m2(value));
    case HVD_COMPLEX64:
      return Put(to, std::complex<float>(static_cast<float>(value)));
    case HVD_COMPLEX128:
      return Put(to, std::complex<double>(value));
  }
}

// NaN of what has an imaginary part.
template <class Real>
double GetReal(const void* from) {
  std::complex<Real> value;
  memcpy(&value, from, sizeof(value));
  return value.imag() == 0 ? value.real() : std::numeric_limits<double>::quiet_NaN();
}

inline double Decode(hvd_dtype_t dtype, const void* from) {
  switch (dtype) {
    case HVD_UINT8:
    case HVD_BOOL:
      return Get<uint8_t>(from);
    case HVD_INT8:
      return Get<int8_t>(from);
    case HVD_INT16:
      return Get<int16_t>(from);
    case HVD_INT32:
      return Get<int32_t>(from);
    case HVD_INT64:
      return Get<int64_t>(from);
    case HVD_FLOAT32:
      return Get<float>(from);
    case HVD_FLOAT64:
      return Get<double>(from);
    case HVD_UINT16:
      return Get<uint16_t>(from);
    case HVD_UINT32:
      return Get<uint32_t>(from);
    case HVD_UINT64:
      return Get<uint64_t>(from);
    case HVD_FLOAT8_E4M3FN:
      return DecodeE4m3fn(*static_cast<const uint8_t*>(from));
    case HVD_FLOAT8_E5M2:
      return DecodeE5m2(*static_cast<const uint8_t*>(from));
    case HVD_COMPLEX64:
      return GetReal<float>(from);
    case HVD_COMPLEX128:
      return GetReal<double>(from);
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
      break;
  }
  uint16_t bits;
  memcpy(&bits, from, sizeof(bits));
  return dtype == HVD_FLOAT16 ? DecodeSmall(bits, 5, 10) : DecodeSmall(bits, 8, 7);
}

inline double ExpectedBool(hvd_op_t op, const std::vector<double>& values) {
  size_t trues = 0;
  for (const double value : values) trues += value != 0 ? 1 : 0;
  if (op == HVD_BXOR) return static_cast<double>(trues % 2);
  const bool any = op == HVD_SUM || op == HVD_MAX || op == HVD_BOR;
  return (any ? trues > 0 : trues == values.size()) ? 1 : 0;
}

// REQUIRES: numbers that an int64 holds.
inline double ExpectedBits(hvd_op_t op, const std::vector<double>& values) {
  auto result = static_cast<int64_t>(values[0]);
  for (size_t i = 1; i < values.size(); ++i) {
    const auto value = static_cast<int64_t>(values[i]);
    if (op == HVD_BAND) result &= value;
    if (op == HVD_BOR) result |= value;
    if (op == HVD_BXOR) result ^= value;
  }
  return static_cast<double>(result);
}

// Returns what the operation gives for these values, one a rank.
inline double Expected(hvd_dtype_t dtype, hvd_op_t op, const std::vector<double>& values) {
  double result = values[0];
  if (dtype == HVD_BOOL) return ExpectedBool(op, values);
  if (IsBits(op)) return ExpectedBits(op, values);
  for (size_t i = 1; i < values.size(); ++i) {
    if (op == HVD_SUM || op == HVD_AVERAGE) result += values[i];
    if (op == HVD_PRODUCT) result *= values[i];
    if (op == HVD_MIN) result = std::min(result, values[i]);
    if (op == HVD_MAX) result = std::max(result, values[i]);
  }
  if (op == HVD_AVERAGE) result /= static_cast<double>(values.size());
  if (!IsFloat(dtype)) return std::trunc(result);
  unsigned char rounded[16] = {};
  Encode(dtype, result, rounded);
  return Decode(dtype, rounded);
}

}  // namespace hvd::rt::test
