// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/nccl_rules.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace hvd::rt {
namespace {

std::optional<NcclNumbers> NumbersOf(hvd_dtype_t dtype) {
  switch (dtype) {
    case HVD_UINT8:
    case HVD_BOOL:
      return NcclNumbers{kNcclUint8, 1};
    case HVD_INT8:
      return NcclNumbers{kNcclInt8, 1};
    case HVD_INT32:
      return NcclNumbers{kNcclInt32, 1};
    case HVD_UINT32:
      return NcclNumbers{kNcclUint32, 1};
    case HVD_INT64:
      return NcclNumbers{kNcclInt64, 1};
    case HVD_UINT64:
      return NcclNumbers{kNcclUint64, 1};
    case HVD_FLOAT16:
      return NcclNumbers{kNcclFloat16, 1};
    case HVD_BFLOAT16:
      return NcclNumbers{kNcclBfloat16, 1};
    case HVD_FLOAT32:
      return NcclNumbers{kNcclFloat32, 1};
    case HVD_FLOAT64:
      return NcclNumbers{kNcclFloat64, 1};
    case HVD_COMPLEX64:
      return NcclNumbers{kNcclFloat32, 2};
    case HVD_COMPLEX128:
      return NcclNumbers{kNcclFloat64, 2};
    default:
      return std::nullopt;
  }
}

bool IsFloat(NcclType type) {
  return type == kNcclFloat16 || type == kNcclBfloat16 || type == kNcclFloat32 ||
         type == kNcclFloat64;
}

// Returns the operation for 0 and 1, which is what a bool holds.
std::optional<NcclOp> BoolOp(hvd_op_t op) {
  switch (op) {
    case HVD_SUM:
    case HVD_MAX:
    case HVD_BOR:
      return kNcclMax;
    case HVD_MIN:
    case HVD_PRODUCT:
    case HVD_BAND:
      return kNcclMin;
    default:
      return std::nullopt;
  }
}

// The bits of a float of 16 bits, if `scale` is one: not subnormal, of so many digits, and of these
// exponents.
struct SmallFloat {
  int digits;
  int least_exponent, most_exponent;
};
std::optional<uint16_t> SmallBits(const SmallFloat& kind, double scale) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(scale), &exponent);  // in [0.5, 1)
  const double mantissa = std::ldexp(fraction, kind.digits + 1);    // with the leading one
  if (!std::isfinite(scale) || scale == 0 || mantissa != std::floor(mantissa)) return std::nullopt;
  if (exponent - 1 < kind.least_exponent || exponent - 1 > kind.most_exponent) return std::nullopt;
  const auto low = static_cast<unsigned>(mantissa) & ((1u << kind.digits) - 1);
  const auto high = static_cast<unsigned>(exponent - 1 + kind.most_exponent) << kind.digits;
  return static_cast<uint16_t>((std::signbit(scale) ? 0x8000u : 0u) | high | low);
}
constexpr double kLeastScale = 1e-30, kMostScale = 1e30;
constexpr SmallFloat kHalf = {10, -14, 15}, kBrain = {7, -126, 127};

}  // namespace

bool PutNcclScalar(NcclType type, double scale, unsigned char bytes[8]) {
  if (type == kNcclFloat64) {
    std::memcpy(bytes, &scale, sizeof(scale));
    return std::isfinite(scale);
  }
  if (type == kNcclFloat32) {
    const auto single = static_cast<float>(scale);
    std::memcpy(bytes, &single, sizeof(single));
    return std::isnormal(single);
  }
  const auto small = SmallBits(type == kNcclFloat16 ? kHalf : kBrain, scale);
  if (small) std::memcpy(bytes, &*small, sizeof(*small));
  return small.has_value();
}

// Whole numbers are scaled in double and truncated, and averaged likewise: NCCL does neither.
std::optional<NcclReduction> PlanNcclReduction(const ReductionAsked& asked) {
  const auto numbers = NumbersOf(asked.dtype);
  if (!numbers) return std::nullopt;
  NcclReduction plan;
  plan.numbers = *numbers;
  const double scale = asked.prescale * asked.postscale;
  const bool scaled = asked.prescale != 1 || asked.postscale != 1;
  // A complex number times a real one keeps no sign of a zero that the parts alone would keep.
  if (scaled && (plan.numbers.each != 1 || !IsFloat(plan.numbers.type))) return std::nullopt;
  if (asked.dtype == HVD_BOOL) {
    const auto op = BoolOp(asked.op);
    if (!op || scaled) return std::nullopt;
    plan.op = *op;
    return plan;
  }
  const bool complex = plan.numbers.each != 1, floats = IsFloat(plan.numbers.type);
  switch (asked.op) {
    case HVD_SUM:
      plan.scale = scale;
      break;
    case HVD_AVERAGE:
      if (!floats) return std::nullopt;
      if (asked.divisor != 0 || scaled) {
        if (asked.divisor == 0) return std::nullopt;
        plan.scale = scale / asked.divisor;
      } else {
        plan.op = kNcclAvg;
      }
      break;
    case HVD_MIN:
    case HVD_MAX:
    case HVD_PRODUCT:
      if (scaled || complex) return std::nullopt;
      plan.op = asked.op == HVD_MIN ? kNcclMin : asked.op == HVD_MAX ? kNcclMax : kNcclProd;
      break;
    default:
      return std::nullopt;
  }
  unsigned char scalar[8];
  const bool told =
      plan.scale == 1 || (floats && PutNcclScalar(plan.numbers.type, plan.scale, scalar));
  if (!told) return std::nullopt;
  return plan;
}

namespace {

// 16-bit floats hold no third: an average over other than all ranks, and one that is scaled, would
// be off by a bit, always to the same side.
bool ReducesByNccl(const Signature& s) {
  if (s.compression != HVD_COMPRESSION_NONE || s.op == HVD_ADASUM) return false;
  const auto dtype = static_cast<hvd_dtype_t>(s.dtype);
  const bool small = DtypeBytes(dtype) == 2;
  const bool of_contributors = s.op == kAverageOfContributors;
  const bool average = of_contributors || s.op == HVD_AVERAGE;
  const bool scaled = s.prescale != 1 || s.postscale != 1;
  if (average && small && (of_contributors || scaled)) return false;
  // Divided by the number of ranks it must still be a number that floats hold.
  const double scale = std::fabs(s.prescale * s.postscale);
  if (scaled && (scale < kLeastScale || scale > kMostScale)) return false;
  ReductionAsked asked;
  asked.dtype = dtype;
  asked.op = average ? HVD_AVERAGE : static_cast<hvd_op_t>(s.op);
  asked.prescale = s.prescale;
  asked.postscale = s.postscale;
  asked.divisor = average && (of_contributors || scaled) ? 1 : 0;
  return PlanNcclReduction(asked).has_value();
}

}  // namespace

bool GoesByNccl(const Signature& signature) {
  switch (signature.kind) {
    case RequestKind::kAllreduce:
    case RequestKind::kReduceScatter:
      return ReducesByNccl(signature);
    case RequestKind::kAllgather:
    case RequestKind::kBroadcast:
    case RequestKind::kAlltoall:
      return true;
    default:
      return false;
  }
}

}  // namespace hvd::rt
