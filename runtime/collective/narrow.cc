// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/narrow.h"

#include <bit>

#include "runtime/collective/kernels/float_rules.h"

namespace hvd::rt {
namespace {

// All without branches, so that the loops are vectorised.

constexpr uint32_t kInfinity = 255u << 23;

struct Bfloat16 {
  static uint16_t FromFloat(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    const bool is_nan = (bits & 0x7fffffff) > kInfinity;
    return static_cast<uint16_t>((is_nan ? bits | 0x400000 : rounded) >> 16);
  }
  static float ToFloat(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

struct Float16 {
  static uint16_t FromFloat(float value) {
    // A number too small for a normal float16 is rounded by adding one whose unit is the smallest
    // subnormal.
    constexpr uint32_t kSubnormalUnit = (127 - 15 + 23 - 10 + 1) << 23;
    constexpr uint32_t kTooLarge = (127 + 16) << 23;
    constexpr uint32_t kSmallestNormal = (127 - 14) << 23;
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t size = bits & 0x7fffffff;
    const uint32_t normal = (size - ((127u - 15) << 23) + 0xfff + ((size >> 13) & 1)) >> 13;
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(size) + std::bit_cast<float>(kSubnormalUnit)) -
        kSubnormalUnit;
    const uint32_t special = size > kInfinity ? 0x7e00 : 0x7c00;
    const uint32_t finite = size < kSmallestNormal ? subnormal : normal;
    return static_cast<uint16_t>((size >= kTooLarge ? special : finite) | ((bits >> 16) & 0x8000));
  }
  static float ToFloat(uint16_t half) {
    constexpr uint32_t kExponent = 0x7c00 << 13;
    constexpr uint32_t kSmallestNormal = (127 - 14) << 23;
    const uint32_t shifted = static_cast<uint32_t>(half & 0x7fff) << 13;
    const uint32_t exponent = shifted & kExponent;
    const uint32_t normal = shifted + ((127 - 15) << 23);
    const uint32_t special = normal + ((128 - 16) << 23);
    const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(normal + (1 << 23)) -
                                                       std::bit_cast<float>(kSmallestNormal));
    const uint32_t finite = exponent == 0 ? subnormal : normal;
    return std::bit_cast<float>((exponent == kExponent ? special : finite) |
                                (static_cast<uint32_t>(half & 0x8000) << 16));
  }
};

template <class Wide, class Format>
void NarrowLoop(const void* wide, uint16_t* narrow, size_t count, double scale) {
  const auto* source = static_cast<const Wide*>(wide);
  if (scale == 1) {
    for (size_t i = 0; i < count; ++i) narrow[i] = Format::FromFloat(static_cast<float>(source[i]));
  } else {
    for (size_t i = 0; i < count; ++i) {
      narrow[i] = Format::FromFloat(static_cast<float>(source[i] * scale));
    }
  }
}

template <class Wide, class Format>
void WidenLoop(const uint16_t* narrow, void* wide, size_t count, double scale) {
  auto* result = static_cast<Wide*>(wide);
  if (scale == 1) {
    for (size_t i = 0; i < count; ++i) result[i] = static_cast<Wide>(Format::ToFloat(narrow[i]));
  } else {
    for (size_t i = 0; i < count; ++i) {
      result[i] = static_cast<Wide>(Format::ToFloat(narrow[i]) * scale);
    }
  }
}

}  // namespace

void Narrow(NarrowPair types, const void* wide, uint16_t* narrow, size_t count, double scale) {
  const FloatRules rules;
  const bool half = types.narrow == HVD_FLOAT16;
  if (types.wide == HVD_FLOAT64) {
    return half ? NarrowLoop<double, Float16>(wide, narrow, count, scale)
                : NarrowLoop<double, Bfloat16>(wide, narrow, count, scale);
  }
  return half ? NarrowLoop<float, Float16>(wide, narrow, count, scale)
              : NarrowLoop<float, Bfloat16>(wide, narrow, count, scale);
}

void Widen(NarrowPair types, const uint16_t* narrow, void* wide, size_t count, double scale) {
  const FloatRules rules;
  const bool half = types.narrow == HVD_FLOAT16;
  if (types.wide == HVD_FLOAT64) {
    return half ? WidenLoop<double, Float16>(narrow, wide, count, scale)
                : WidenLoop<double, Bfloat16>(narrow, wide, count, scale);
  }
  return half ? WidenLoop<float, Float16>(narrow, wide, count, scale)
              : WidenLoop<float, Bfloat16>(narrow, wide, count, scale);
}

}  // namespace hvd::rt
