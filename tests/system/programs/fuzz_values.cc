// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/fuzz_values.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace fuzz {
namespace {

// How the bits of a float of at most 16 bits are dealt.
struct Layout {
  hvd_dtype_t code;
  int exponent_bits;
  int mantissa_bits;
};
constexpr Layout kLayouts[] = {
    {HVD_FLOAT16, 5, 10}, {HVD_BFLOAT16, 8, 7}, {HVD_FLOAT8_E4M3FN, 4, 3}, {HVD_FLOAT8_E5M2, 5, 2}};

double Decode(const Layout& layout, unsigned bits) {
  const unsigned mantissa = bits & ((1U << layout.mantissa_bits) - 1);
  const unsigned exponent = (bits >> layout.mantissa_bits) & ((1U << layout.exponent_bits) - 1);
  const bool negative = bits >> (layout.mantissa_bits + layout.exponent_bits) & 1;
  const unsigned highest = (1U << layout.exponent_bits) - 1;
  const bool has_infinities = layout.code != HVD_FLOAT8_E4M3FN;
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == highest && has_infinities) {
    value = mantissa == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == highest && mantissa + 1 == 1U << layout.mantissa_bits) {
    value = std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - layout.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1U << layout.mantissa_bits),
                       static_cast<int>(exponent) - bias - layout.mantissa_bits);
  }
  return negative ? -value : value;
}

const Layout* LayoutOf(hvd_dtype_t code) {
  for (const Layout& layout : kLayouts) {
    if (layout.code == code) return &layout;
  }
  return nullptr;
}

// The bits of each value that a layout holds.
unsigned Encode(const Layout& layout, double value) {
  static std::map<hvd_dtype_t, std::map<double, unsigned>> tables;
  std::map<double, unsigned>& table = tables[layout.code];
  if (table.empty()) {
    const unsigned count = 1U << (1 + layout.exponent_bits + layout.mantissa_bits);
    for (unsigned bits = 0; bits < count; ++bits) {
      const double decoded = Decode(layout, bits);
      if (!std::isnan(decoded)) table.emplace(decoded, bits);
    }
  }
  const auto found = table.find(value);
  if (found == table.end()) {
    std::fprintf(stderr, "fuzz: type %d does not hold %g\n", layout.code, value);
    std::exit(3);
  }
  return found->second;
}

template <typename T>
void Put(double value, unsigned char* place) {
  const auto number = static_cast<T>(value);
  std::memcpy(place, &number, sizeof number);
}

template <typename T>
double Take(const unsigned char* place) {
  T number;
  std::memcpy(&number, place, sizeof number);
  return static_cast<double>(number);
}

// Either direction, for the types that C++ has.
template <typename Visit>
void VisitPlain(hvd_dtype_t code, const Visit& visit) {
  switch (code) {
    // The branches differ in the type that they give. NOLINTNEXTLINE(bugprone-branch-clone)
    case HVD_INT8:
      return visit(int8_t());
    case HVD_INT16:
      return visit(int16_t());
    case HVD_INT32:
      return visit(int32_t());
    case HVD_INT64:
      return visit(int64_t());
    case HVD_UINT8:
    case HVD_BOOL:
      return visit(uint8_t());
    case HVD_UINT16:
      return visit(uint16_t());
    case HVD_UINT32:
      return visit(uint32_t());
    case HVD_UINT64:
      return visit(uint64_t());
    case HVD_FLOAT32:
      return visit(float());
    default:
      return visit(double());
  }
}

}  // namespace

const std::vector<Type>& Types() {
  static const std::vector<Type> types = {{HVD_UINT8, 1, Type::kUnsigned},
                                          {HVD_INT8, 1, Type::kSigned},
                                          {HVD_UINT16, 2, Type::kUnsigned},
                                          {HVD_INT16, 2, Type::kSigned},
                                          {HVD_UINT32, 4, Type::kUnsigned},
                                          {HVD_INT32, 4, Type::kSigned},
                                          {HVD_UINT64, 8, Type::kUnsigned},
                                          {HVD_INT64, 8, Type::kSigned},
                                          {HVD_FLOAT16, 2, Type::kSmallFloat},
                                          {HVD_BFLOAT16, 2, Type::kSmallFloat},
                                          {HVD_FLOAT32, 4, Type::kFloat},
                                          {HVD_FLOAT64, 8, Type::kFloat},
                                          {HVD_BOOL, 1, Type::kBool},
                                          {HVD_FLOAT8_E4M3FN, 1, Type::kSmallFloat},
                                          {HVD_FLOAT8_E5M2, 1, Type::kSmallFloat},
                                          {HVD_COMPLEX64, 8, Type::kComplex},
                                          {HVD_COMPLEX128, 16, Type::kComplex}};
  return types;
}

bool Reduces(const Type& type, hvd_op_t op) {
  switch (op) {
    case HVD_AVERAGE:
      return type.family != Type::kBool;
    case HVD_MIN:
    case HVD_MAX:
      return type.family != Type::kComplex;
    case HVD_BAND:
    case HVD_BOR:
    case HVD_BXOR:
      return type.IsWhole();
    default:
      return true;
  }
}

void Store(const Type& type, Value value, unsigned char* place) {
  if (const Layout* layout = LayoutOf(type.code)) {
    const unsigned bits = Encode(*layout, value.real());
    for (size_t i = 0; i < type.bytes; ++i) place[i] = static_cast<unsigned char>(bits >> 8 * i);
  } else if (type.family == Type::kComplex) {
    const size_t half = type.bytes / 2;
    const auto put = half == sizeof(float) ? Put<float> : Put<double>;
    put(value.real(), place);
    put(value.imag(), place + half);
  } else {
    VisitPlain(type.code, [&](auto kind) { Put<decltype(kind)>(value.real(), place); });
  }
}

Value Load(const Type& type, const unsigned char* place) {
  if (const Layout* layout = LayoutOf(type.code)) {
    unsigned bits = 0;
    for (size_t i = 0; i < type.bytes; ++i) bits |= static_cast<unsigned>(place[i]) << 8 * i;
    return Decode(*layout, bits);
  }
  if (type.family == Type::kComplex) {
    const size_t half = type.bytes / 2;
    const auto take = half == sizeof(float) ? Take<float> : Take<double>;
    return {take(place), take(place + half)};
  }
  double value = 0;
  VisitPlain(type.code, [&](auto kind) { value = Take<decltype(kind)>(place); });
  return value;
}

double Precision(const Type& type) {
  if (const Layout* layout = LayoutOf(type.code)) return std::ldexp(2, -layout->mantissa_bits - 1);
  if (type.IsWhole()) return 0;
  const bool narrow = type.code == HVD_FLOAT32 || type.code == HVD_COMPLEX64;
  return narrow ? 4e-7 : 1e-15;
}

}  // namespace fuzz
