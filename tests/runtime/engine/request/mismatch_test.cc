// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/mismatch.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

Signature Make(RequestKind kind, hvd_dtype_t dtype, std::vector<int64_t> shape) {
  Signature signature;
  signature.kind = kind;
  signature.dtype = dtype;
  signature.op = kind == RequestKind::kAllreduce ? HVD_SUM : HVD_AVERAGE;
  signature.ndim = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), signature.shape.begin());
  return signature;
}

TEST_CASE("equal requests agree") {
  const Signature a = Make(RequestKind::kAllreduce, HVD_FLOAT32, {64, 10});
  CHECK(Compatible(a, a));
}

TEST_CASE("only an allgather may differ in its first dimension") {
  CHECK(Compatible(Make(RequestKind::kAllgather, HVD_INT32, {2, 3}),
                   Make(RequestKind::kAllgather, HVD_INT32, {9, 3})));
  CHECK_FALSE(Compatible(Make(RequestKind::kAllgather, HVD_INT32, {2, 3}),
                         Make(RequestKind::kAllgather, HVD_INT32, {2, 4})));
  CHECK_FALSE(Compatible(Make(RequestKind::kAllreduce, HVD_INT32, {2, 3}),
                         Make(RequestKind::kAllreduce, HVD_INT32, {9, 3})));
}

TEST_CASE("the message names what differs, both requests and the ranks in order") {
  const Asker a{5, Make(RequestKind::kAllreduce, HVD_FLOAT32, {64, 10})};
  Asker b{2, Make(RequestKind::kAllreduce, HVD_FLOAT32, {64, 12})};
  const std::string text = MismatchText("grad.3", a, b);
  CHECK(text.find("tensor 'grad.3': ranks ask for different shapes: rank 2 asked for allreduce "
                  "float32 [64,12] sum, rank 5 for allreduce float32 [64,10] sum") == 0);
  CHECK(MismatchText("grad.3", b, a) == text);

  b.signature = Make(RequestKind::kBroadcast, HVD_FLOAT32, {64, 10});
  CHECK(MismatchText("x", a, b).find("different operations") != std::string::npos);
  b.signature = Make(RequestKind::kAllreduce, HVD_INT8, {64, 10});
  CHECK(MismatchText("x", a, b).find("different dtypes") != std::string::npos);
  b.signature = a.signature;
  b.signature.op = HVD_MAX;
  CHECK(MismatchText("x", a, b).find("different reduction ops") != std::string::npos);
  b.signature = a.signature;
  b.signature.refuses_joined = 1;
  CHECK(MismatchText("x", a, b).find("different flags: rank 2 asked for allreduce float32 [64,10] "
                                     "sum with HVD_REFUSE_JOINED, rank 5") != std::string::npos);
  b.signature = Make(RequestKind::kAllreduce, HVD_FLOAT32, {640});
  CHECK(MismatchText("x", a, b).find("different numbers of dimensions") != std::string::npos);
}

TEST_CASE("requests that look alike do not go together when they are for different tensors") {
  Asker a{5, Make(RequestKind::kAllreduce, HVD_FLOAT32, {64, 10})};
  Asker b{2, a.signature};
  a.signature.contents = 1;
  CHECK_FALSE(Compatible(a.signature, b.signature));
  b.signature.contents = 1;
  CHECK(Compatible(a.signature, b.signature));
  b.signature.contents = 2;
  const std::string text = MismatchText("grad.3", a, b);
  CHECK(text == MismatchText("grad.3", b, a));
  CHECK(text.find("tensor 'grad.3': ranks 2 and 5 give different tensors, by their names or their "
                  "order, to allreduce float32 [64,10] sum") == 0);
  CHECK(WithContents(text, "a, b\n") == text + ". This rank gives: a, b\\n");
  CHECK(WithContents(text, "") == text);

  b.signature.op = HVD_MAX;  // what can be seen counts more
  CHECK(MismatchText("x", a, b).find("different reduction ops") != std::string::npos);
}

}  // namespace
}  // namespace hvd::rt
