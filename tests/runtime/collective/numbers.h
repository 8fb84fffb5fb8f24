// The reference's view of every element type: encode and decode by arithmetic on doubles, apart
// from the kernels' ways.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "hvd/hvd.h"

namespace hvd::test {

inline constexpr hvd_dtype_t kAllDtypes[] = {HVD_UINT8, HVD_INT8,    HVD_INT16,   HVD_INT32,
                                             HVD_INT64, HVD_FLOAT16, HVD_FLOAT32, HVD_FLOAT64,
                                             HVD_BOOL,  HVD_BFLOAT16};
inline constexpr hvd_op_t kAllOps[] = {HVD_AVERAGE, HVD_SUM, HVD_MIN, HVD_MAX, HVD_PRODUCT};

inline bool IsFloat(hvd_dtype_t dtype) {
  return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 || dtype == HVD_FLOAT32 ||
         dtype == HVD_FLOAT64;
}
inline bool IsSigned(hvd_dtype_t dtype) { return dtype != HVD_UINT8 && dtype != HVD_BOOL; }

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
  }
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
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
      break;
  }
  uint16_t bits;
  memcpy(&bits, from, sizeof(bits));
  return dtype == HVD_FLOAT16 ? DecodeSmall(bits, 5, 10) : DecodeSmall(bits, 8, 7);
}

// What the operation gives for these values, one a rank.
inline double Expected(hvd_dtype_t dtype, hvd_op_t op, const std::vector<double>& values) {
  double result = values[0];
  if (dtype == HVD_BOOL) {
    const bool any = op == HVD_SUM || op == HVD_MAX;
    for (const double value : values) {
      result = any ? (result != 0 || value != 0) : (result != 0 && value != 0);
    }
    return result != 0 ? 1 : 0;
  }
  for (size_t i = 1; i < values.size(); ++i) {
    if (op == HVD_SUM || op == HVD_AVERAGE) result += values[i];
    if (op == HVD_PRODUCT) result *= values[i];
    if (op == HVD_MIN) result = std::min(result, values[i]);
    if (op == HVD_MAX) result = std::max(result, values[i]);
  }
  if (op == HVD_AVERAGE) result /= static_cast<double>(values.size());
  if (!IsFloat(dtype)) return std::trunc(result);
  unsigned char rounded[8] = {};
  Encode(dtype, result, rounded);
  return Decode(dtype, rounded);
}

}  // namespace hvd::test
