// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/nccl_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace hvd::rt {
namespace {

// 16-bit floats by what they stand for. A value lies in a double without loss.
struct Half {
  uint16_t bits;
  static double Read(Half half) {
    const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
    double value = exponent == 0    ? std::ldexp(fraction, -24)
                   : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                    : std::ldexp(fraction + 1024, exponent - 25);
    return half.bits >> 15 != 0 ? -value : value;
  }
  // To the nearest, ties to even.
  static Half Write(double value) {
    const double size = std::fabs(value);
    int exponent = 0;
    const double mantissa = std::frexp(size, &exponent);  // 0.5 to 1
    int bits = 31 << 10;                                  // what is too large
    if (std::isnan(value)) bits += 512;
    if (size < std::ldexp(1, -14)) {
      bits = static_cast<int>(std::nearbyint(std::ldexp(size, 24)));
    } else if (size < 65520) {
      bits = ((exponent + 14) << 10) + static_cast<int>(std::nearbyint(mantissa * 2048)) - 1024;
    }
    return {static_cast<uint16_t>(bits | (std::signbit(value) ? 1 << 15 : 0))};
  }
};

struct Brain {
  uint16_t bits;
  static double Read(Brain brain) {
    const uint32_t wide = static_cast<uint32_t>(brain.bits) << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
  }
  // To the nearest, ties to even.
  static Brain Write(double value) {
    const auto narrow = static_cast<float>(value);
    uint32_t wide;
    memcpy(&wide, &narrow, sizeof(wide));
    return {static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16)};
  }
};

template <class T>
auto Read(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return T::Read(value);
  }
}

template <class T, class Value>
T Write(Value value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T::Write(value);
  }
}

template <class T>
void CombineAll(NcclOp op, size_t count, const char* from, char* to) {
  const T* a = reinterpret_cast<const T*>(from);
  T* b = reinterpret_cast<T*>(to);
  for (size_t i = 0; i < count; ++i) {
    const auto x = Read(a[i]), y = Read(b[i]);
    switch (op) {
      case kNcclProd:
        b[i] = Write<T>(x * y);
        break;
      case kNcclMax:
        b[i] = Write<T>(std::max(x, y));
        break;
      case kNcclMin:
        b[i] = Write<T>(std::min(x, y));
        break;
      default:
        b[i] = Write<T>(x + y);
    }
  }
}

template <class T>
void ScaleAll(size_t count, double factor, bool divides, char* data) {
  T* all = reinterpret_cast<T*>(data);
  for (size_t i = 0; i < count; ++i) {
    const auto value = Read(all[i]);
    if constexpr (std::is_integral_v<T>) {
      all[i] = divides ? static_cast<T>(value / static_cast<T>(factor))
                       : static_cast<T>(value * static_cast<T>(factor));
    } else {
      all[i] = Write<T>(divides ? value / factor : value * factor);
    }
  }
}

template <class Visitor>
void ForType(NcclType type, Visitor visit) {
  switch (type) {
    case kNcclInt8:
      return visit(int8_t{});
    case kNcclUint8:
      return visit(uint8_t{});
    case kNcclInt32:
      return visit(int32_t{});
    case kNcclUint32:
      return visit(uint32_t{});
    case kNcclInt64:
      return visit(int64_t{});
    case kNcclUint64:
      return visit(uint64_t{});
    case kNcclFloat16:
      return visit(Half{});
    case kNcclFloat32:
      return visit(float{});
    case kNcclFloat64:
      return visit(double{});
    case kNcclBfloat16:
      return visit(Brain{});
  }
}

}  // namespace

size_t NcclBytesOf(NcclType type) {
  size_t bytes = 0;
  ForType(type, [&bytes](auto value) { bytes = sizeof(value); });
  return bytes;
}

double NcclScalar(NcclType type, const void* scalar) {
  double number = 0;
  ForType(type, [&](auto value) {
    memcpy(&value, scalar, sizeof(value));
    number = static_cast<double>(Read(value));
  });
  return number;
}

void NcclCombine(NcclType type, NcclOp op, size_t count, const char* from, char* to) {
  ForType(type, [&](auto value) { CombineAll<decltype(value)>(op, count, from, to); });
}

void NcclScale(NcclType type, size_t count, double factor, bool divides, char* data) {
  ForType(type, [&](auto value) { ScaleAll<decltype(value)>(count, factor, divides, data); });
}

}  // namespace hvd::rt
