// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/nccl_rules.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

namespace hvd::rt {
namespace {

Signature Of(RequestKind kind, hvd_dtype_t dtype, uint32_t op = HVD_SUM) {
  Signature signature;
  signature.kind = kind;
  signature.dtype = dtype;
  signature.op = op;
  return signature;
}
Signature Sum(hvd_dtype_t dtype, double prescale = 1, double postscale = 1) {
  Signature signature = Of(RequestKind::kAllreduce, dtype);
  signature.prescale = prescale;
  signature.postscale = postscale;
  return signature;
}

TEST_CASE("what only moves goes by NCCL in every type") {
  for (const auto kind :
       {RequestKind::kBroadcast, RequestKind::kAllgather, RequestKind::kAlltoall}) {
    CHECK(GoesByNccl(Of(kind, HVD_FLOAT8_E5M2)));
    CHECK(GoesByNccl(Of(kind, HVD_UINT16)));
  }
  CHECK_FALSE(GoesByNccl(Of(RequestKind::kSend, HVD_FLOAT32)));
  CHECK_FALSE(GoesByNccl(Of(RequestKind::kBarrier, HVD_FLOAT32)));
}

TEST_CASE("sums go by NCCL in the types that it adds") {
  for (const auto dtype :
       {HVD_INT8, HVD_UINT64, HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT64, HVD_BOOL, HVD_COMPLEX128}) {
    CHECK(GoesByNccl(Sum(dtype)));
  }
  for (const auto dtype : {HVD_INT16, HVD_UINT16, HVD_FLOAT8_E4M3FN})
    CHECK_FALSE(GoesByNccl(Sum(dtype)));
  CHECK_FALSE(GoesByNccl(Of(RequestKind::kAllreduce, HVD_FLOAT32, HVD_ADASUM)));
  CHECK_FALSE(GoesByNccl(Of(RequestKind::kAllreduce, HVD_INT32, HVD_BXOR)));
  Signature compressed = Sum(HVD_FLOAT32);
  compressed.compression = HVD_COMPRESSION_FP16;
  CHECK_FALSE(GoesByNccl(compressed));
}

TEST_CASE("scales go by NCCL where its type holds them") {
  CHECK(GoesByNccl(Sum(HVD_FLOAT32, 0.1, 3)));
  CHECK_FALSE(GoesByNccl(Sum(HVD_FLOAT32, 1e-30, 1e-3)));
  CHECK(GoesByNccl(Sum(HVD_FLOAT16, 0.5)));
  CHECK_FALSE(GoesByNccl(Sum(HVD_FLOAT16, 0.1)));
  CHECK_FALSE(GoesByNccl(Sum(HVD_BFLOAT16, 1.00390625)));  // 9 digits
  CHECK_FALSE(GoesByNccl(Sum(HVD_INT32, 0.5, 2)));         // each is cut
  CHECK_FALSE(GoesByNccl(Sum(HVD_COMPLEX64, 2)));
  Signature least = Of(RequestKind::kAllreduce, HVD_FLOAT32, HVD_MIN);
  CHECK(GoesByNccl(least));
  least.postscale = 2;
  CHECK_FALSE(GoesByNccl(least));
}

TEST_CASE("averages go by NCCL but for whole numbers, and small floats over fewer than all") {
  const auto average = [](hvd_dtype_t dtype, uint32_t op) {
    return GoesByNccl(Of(RequestKind::kReduceScatter, dtype, op));
  };
  CHECK(average(HVD_FLOAT16, HVD_AVERAGE));
  CHECK(average(HVD_FLOAT32, kAverageOfContributors));
  CHECK_FALSE(average(HVD_FLOAT16, kAverageOfContributors));
  CHECK_FALSE(average(HVD_INT64, HVD_AVERAGE));
}

TEST_CASE("an average over all ranks is NCCL's own, another one multiplies first") {
  ReductionAsked asked;
  asked.op = HVD_AVERAGE;
  CHECK(PlanNcclReduction(asked)->op == kNcclAvg);
  asked.divisor = 4;
  asked.prescale = 2;
  const auto plan = PlanNcclReduction(asked);
  CHECK(plan->op == kNcclSum);
  CHECK(plan->scale == 0.5);
  asked.dtype = HVD_COMPLEX64;
  asked.prescale = 1;
  CHECK(PlanNcclReduction(asked)->numbers.each == 2);
}

TEST_CASE("a bool is a byte that is 0 or 1") {
  ReductionAsked asked;
  asked.dtype = HVD_BOOL;
  CHECK(PlanNcclReduction(asked)->op == kNcclMax);
  asked.op = HVD_PRODUCT;
  CHECK(PlanNcclReduction(asked)->op == kNcclMin);
  asked.op = HVD_BXOR;
  CHECK_FALSE(PlanNcclReduction(asked).has_value());
}

template <class Bits>
Bits Scalar(NcclType type, double scale) {
  unsigned char bytes[8] = {};
  REQUIRE(PutNcclScalar(type, scale, bytes));
  Bits bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

TEST_CASE("scalars of 16 bits are told bit by bit") {
  CHECK(Scalar<uint16_t>(kNcclFloat16, 1) == 0x3c00);
  CHECK(Scalar<uint16_t>(kNcclFloat16, -0.5) == 0xb800);
  CHECK(Scalar<uint16_t>(kNcclFloat16, 65504) == 0x7bff);
  CHECK(Scalar<uint16_t>(kNcclFloat16, 1.0 / 16384) == 0x0400);
  CHECK(Scalar<uint16_t>(kNcclBfloat16, 1) == 0x3f80);
  CHECK(Scalar<uint16_t>(kNcclBfloat16, 3.140625) == 0x4049);
  CHECK(Scalar<uint32_t>(kNcclFloat32, 0.1) == 0x3dcccccd);
  unsigned char bytes[8];
  for (const double not_held :
       {1.0 / 32768, 65536.0, 0.1, 0.0, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_FALSE(PutNcclScalar(kNcclFloat16, not_held, bytes));
  }
  CHECK_FALSE(PutNcclScalar(kNcclFloat32, 1e-40, bytes));
}

}  // namespace
}  // namespace hvd::rt
