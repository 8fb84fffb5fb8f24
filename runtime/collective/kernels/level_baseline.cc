// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/kernels/levels.h"
#include "runtime/collective/kernels/reduce_loop.h"

namespace hvd::rt {
namespace {

float BitsToFloat(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t FloatToBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// As VCVTPH2PS: denormals kept, signalling NaNs made quiet.
float WidenHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f) {
    const uint32_t quiet = fraction != 0 ? 0x400000 : 0;
    return BitsToFloat(sign | 0x7f800000 | quiet | (fraction << 13));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return BitsToFloat(sign | FloatToBits(magnitude));
  }
  return BitsToFloat(sign | ((exponent + 112) << 23) | (fraction << 13));
}

// As VCVTPS2PH to nearest even: overflow becomes infinity, a NaN keeps its upper bits.
uint16_t RoundToHalf(float value) {
  const uint32_t bits = FloatToBits(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((magnitude >> 13) & 0x3ff);
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and more
  if (magnitude >= 0x38800000) {                      // normal
    const uint32_t rebased = magnitude - (112u << 23);
    return sign | ((rebased + 0xfff + ((rebased >> 13) & 1)) >> 13);
  }
  if (magnitude < 0x33000000) return sign;  // less than half the smallest denormal
  const uint32_t exponent = magnitude >> 23;
  const uint32_t fraction = (magnitude & 0x7fffff) | 0x800000;
  const uint32_t shift = 126 - exponent;
  const uint32_t kept = fraction >> shift;
  const uint32_t rest = fraction & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return sign | (kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0));
}

struct Baseline {
  static constexpr size_t kBytes = 16;
  using Tail = CopiedTail;

  struct HalfConvert {
    typedef uint16_t Narrow __attribute__((vector_size(kBytes / 2)));
    typedef float Vector __attribute__((vector_size(kBytes)));
    static Vector Widen(Narrow narrow) {
      Vector v = {};
      for (int i = 0; i < 4; ++i) v[i] = WidenHalf(narrow[i]);
      return v;
    }
    static Narrow Round(Vector v) {
      Narrow narrow = {};
      for (int i = 0; i < 4; ++i) narrow[i] = RoundToHalf(v[i]);
      return narrow;
    }
  };
};

}  // namespace

ReduceKernel FindBaselineKernel(hvd_dtype_t dtype, hvd_op_t op) {
  return FindAtLevel<Baseline>(dtype, op);
}

}  // namespace hvd::rt
