// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/values.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>

namespace bench {
namespace {

template <class T>
void Put(T value, void* element) {
  std::memcpy(element, &value, sizeof value);
}

template <class T>
T Get(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

// Enough for the non-negative integers up to 2048 that are used here; larger ones are cut.
uint16_t ToFloat16(double value) {
  if (value < 1) return 0;
  const int exponent = std::ilogb(value);
  const auto mantissa = static_cast<uint16_t>(std::ldexp(value, 10 - exponent)) & 0x3ff;
  return static_cast<uint16_t>((exponent + 15) << 10 | mantissa);
}

double FromFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(bits & 0x3ff, -24);
  return sign * std::ldexp((bits & 0x3ff) | 0x400, exponent - 25);
}

uint16_t ToBfloat16(double value) {
  const auto narrow = static_cast<float>(value);
  return static_cast<uint16_t>(Get<uint32_t>(&narrow) >> 16);
}

double FromBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  return Get<float>(&wide);
}

struct Float8 {
  int bias, fraction_bits;
};
constexpr Float8 kE4m3fn = {7, 3}, kE5m2 = {15, 2};

// To nearest even. REQUIRES: no more than the type's largest number.
uint8_t ToFloat8(Float8 format, double value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (value == 0) return static_cast<uint8_t>(sign);
  const int exponent = std::max(std::ilogb(value), 1 - format.bias);
  const double units =
      std::nearbyint(std::ldexp(std::fabs(value), format.fraction_bits - exponent));
  const int above = (exponent + format.bias - 1) << format.fraction_bits;
  return static_cast<uint8_t>(sign | (above + static_cast<int>(units)));
}

double FromFloat8(Float8 format, uint8_t bits) {
  const int size = bits & 0x7f, fraction = size & ((1 << format.fraction_bits) - 1);
  const int exponent = size >> format.fraction_bits;
  const int units = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  const double value =
      std::ldexp(units, std::max(exponent, 1) - format.bias - format.fraction_bits);
  return bits >= 0x80 ? -value : value;
}

// Real numbers are all that is written; NaN for any other.
template <class Real>
double FromComplex(const void* element) {
  const auto value = Get<std::complex<Real>>(element);
  return value.imag() == 0 ? value.real() : std::nan("");
}

template <class T>
void Repeat(const void* element, void* data, size_t count) {
  std::fill_n(static_cast<T*>(data), count, Get<T>(element));
}

}  // namespace

const std::vector<Dtype>& Dtypes() {
  static const std::vector<Dtype> all = {
      {HVD_FLOAT32, 4, "float32"},
      {HVD_FLOAT64, 8, "float64"},
      {HVD_FLOAT16, 2, "float16"},
      {HVD_BFLOAT16, 2, "bfloat16"},
      {HVD_INT8, 1, "int8"},
      {HVD_UINT8, 1, "uint8"},
      {HVD_INT16, 2, "int16"},
      {HVD_INT32, 4, "int32"},
      {HVD_INT64, 8, "int64"},
      {HVD_UINT16, 2, "uint16"},
      {HVD_UINT32, 4, "uint32"},
      {HVD_UINT64, 8, "uint64"},
      {HVD_BOOL, 1, "bool"},
      {HVD_FLOAT8_E4M3FN, 1, "float8_e4m3fn"},
      {HVD_FLOAT8_E5M2, 1, "float8_e5m2"},
      {HVD_COMPLEX64, 8, "complex64"},
      {HVD_COMPLEX128, 16, "complex128"},
  };
  return all;
}

std::optional<Dtype> FindDtype(const std::string& name) {
  for (const Dtype& dtype : Dtypes()) {
    if (name == dtype.name) return dtype;
  }
  return std::nullopt;
}

double Pattern(int rank, size_t index) {
  const uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15u >> 32;
  return static_cast<double>((mixed + static_cast<uint64_t>(rank)) % 3);
}

double PatternSum(const Dtype& dtype, int size, size_t index) {
  double sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += Pattern(rank, index);
  if (dtype.code == HVD_BOOL) return sum != 0;
  unsigned char rounded[kMostBytes];  // float8 has no integers beyond a few
  Store(dtype, sum, rounded);
  return Load(dtype, rounded);
}

void Store(const Dtype& dtype, double value, void* element) {
  // Wraps where the type is too small, as sums do.
  const uint64_t integer =
      value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  switch (dtype.code) {
    case HVD_FLOAT32:
      return Put(static_cast<float>(value), element);
    case HVD_FLOAT64:
      return Put(value, element);
    case HVD_FLOAT16:
      return Put(ToFloat16(value), element);
    case HVD_BFLOAT16:
      return Put(ToBfloat16(value), element);
    case HVD_FLOAT8_E4M3FN:
      return Put(ToFloat8(kE4m3fn, value), element);
    case HVD_FLOAT8_E5M2:
      return Put(ToFloat8(kE5m2, value), element);
    case HVD_COMPLEX64:
      return Put(std::complex<float>(static_cast<float>(value)), element);
    case HVD_COMPLEX128:
      return Put(std::complex<double>(value), element);
    case HVD_UINT16:
    case HVD_INT16:
      return Put(static_cast<uint16_t>(integer), element);
    case HVD_UINT32:
    case HVD_INT32:
      return Put(static_cast<uint32_t>(integer), element);
    case HVD_UINT64:
    case HVD_INT64:
      return Put(integer, element);
    case HVD_BOOL:
      return Put(static_cast<uint8_t>(integer != 0), element);
    default:
      return Put(static_cast<uint8_t>(integer), element);
  }
}

double Load(const Dtype& dtype, const void* element) {
  switch (dtype.code) {
    case HVD_FLOAT32:
      return Get<float>(element);
    case HVD_FLOAT64:
      return Get<double>(element);
    case HVD_FLOAT16:
      return FromFloat16(Get<uint16_t>(element));
    case HVD_BFLOAT16:
      return FromBfloat16(Get<uint16_t>(element));
    case HVD_INT8:
      return Get<int8_t>(element);
    case HVD_INT16:
      return Get<int16_t>(element);
    case HVD_INT32:
      return Get<int32_t>(element);
    case HVD_INT64:
      return static_cast<double>(Get<int64_t>(element));
    case HVD_UINT16:
      return Get<uint16_t>(element);
    case HVD_UINT32:
      return Get<uint32_t>(element);
    case HVD_UINT64:
      return static_cast<double>(Get<uint64_t>(element));
    case HVD_FLOAT8_E4M3FN:
      return FromFloat8(kE4m3fn, Get<uint8_t>(element));
    case HVD_FLOAT8_E5M2:
      return FromFloat8(kE5m2, Get<uint8_t>(element));
    case HVD_COMPLEX64:
      return FromComplex<float>(element);
    case HVD_COMPLEX128:
      return FromComplex<double>(element);
    default:
      return Get<uint8_t>(element);
  }
}

void Fill(const Dtype& dtype, double value, void* data, size_t count) {
  unsigned char element[kMostBytes];
  Store(dtype, value, element);
  switch (dtype.bytes) {
    case 1:
      return Repeat<uint8_t>(element, data, count);
    case 2:
      return Repeat<uint16_t>(element, data, count);
    case 4:
      return Repeat<uint32_t>(element, data, count);
    case 8:
      return Repeat<uint64_t>(element, data, count);
    default:
      return Repeat<std::complex<double>>(element, data, count);
  }
}

}  // namespace bench
