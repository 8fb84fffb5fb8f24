// SPDX-License-Identifier: Apache-2.0
// Execution on plain collectives: what requests and log entries become, with and without ranks that
// have joined.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "runtime/engine/engine.h"
#include "runtime/engine/execution/execute.h"
#include "runtime/engine/execution/neutral.h"
#include "runtime/engine/execution/reduction.h"
#include "tests/runtime/collective/plain_world.h"

namespace hvd::rt {
namespace {

using test::PlainWorld;

struct Floats {
  std::vector<float> data;
  Request request;
  LogEntry entry;

  Floats(RequestKind kind, std::vector<int64_t> shape, float value) {
    Signature& s = request.signature;
    s.kind = kind;
    s.dtype = HVD_FLOAT32;
    s.op = HVD_SUM;
    s.ndim = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), s.shape.begin());
    data.assign(s.elements(), value);
    request.name = "x";
    request.buffers.input = request.buffers.output = data.data();
  }
  absl::Status Run(Collectives* collectives, int contributors) {
    entry.signature = request.signature;
    entry.contributors = contributors;
    const absl::Status lost = ExecuteRequest({&request, entry, collectives, collectives});
    return lost.ok() ? request.result.status : lost;
  }
  absl::Status RunAbsent(Collectives* collectives, int contributors) {
    entry.signature = request.signature;
    entry.contributors = contributors;
    return ExecuteAbsent(entry, collectives);
  }
  // The last of `joined` ranks bring nothing.
  absl::Status RunJoined(Collectives* collectives, int joined) {
    const int here = collectives->size() - joined;
    return collectives->rank() < here ? Run(collectives, here) : RunAbsent(collectives, here);
  }
};

std::vector<float> Result(const void* data, size_t count) {
  const auto* floats = static_cast<const float*>(data);
  return {floats, floats + count};
}

TEST_CASE("ranks that have joined change nothing") {
  struct Case {
    uint32_t op;
    float wanted;
  };
  for (const Case& one : {Case{HVD_SUM, -5},
                          {HVD_AVERAGE, -1.25f},
                          {kAverageOfContributors, -2.5f},
                          {HVD_MIN, -3},
                          {HVD_MAX, -2},
                          {HVD_PRODUCT, 6}}) {
    for (const uint32_t compression : {HVD_COMPRESSION_NONE, HVD_COMPRESSION_BF16}) {
      PlainWorld world(4);
      CHECK(world.Run([&](Collectives& collectives) -> std::string {
        Floats floats(RequestKind::kAllreduce, {7}, -2.0f - collectives.rank());
        floats.request.signature.op = one.op;
        floats.request.signature.compression = compression;
        const absl::Status status = floats.RunJoined(&collectives, 2);
        if (!status.ok()) return status.ToString();
        if (collectives.rank() < 2 && floats.data != std::vector<float>(7, one.wanted)) {
          return "op " + std::to_string(one.op) + " gives " + std::to_string(floats.data[0]);
        }
        return "";
      }) == "");
    }
  }
}

TEST_CASE("neutral values of every type") {
  for (const hvd_dtype_t dtype : test::kAllDtypes) {
    for (const hvd_op_t op : test::kAllOps) {
      if (op == HVD_AVERAGE || !test::Exists(dtype, op)) continue;
      Signature signature;
      signature.dtype = dtype;
      signature.op = op;
      unsigned char neutral[32] = {};
      FillNeutral(signature, neutral, 2);
      for (const double value : {0.0, 1.0, 3.0, -2.0, 448.0, double{INFINITY}}) {
        if (dtype == HVD_BOOL && value != 0 && value != 1) continue;
        if (!test::IsFloat(dtype) && std::abs(value) > 3) continue;
        if (!test::IsSigned(dtype) && value < 0) continue;
        INFO(DtypeName(dtype) << " " << OpName(op) << " " << value);
        unsigned char other[16] = {}, result[16] = {};
        test::Encode(dtype, value, other);
        for (const bool first : {true, false}) {
          const void* second = neutral + DtypeBytes(dtype);
          const void* sources[] = {first ? second : other, first ? other : second};
          void* destination = result;
          FindReduceKernel(dtype, op, BestKernelLevel())({sources, 2, &destination, 1, 1});
          CHECK(memcmp(result, other, DtypeBytes(dtype)) == 0);
        }
      }
    }
  }
}

TEST_CASE("MIN, MAX and PRODUCT with a prescale are right beside a rank that has joined") {
  struct Case {
    uint32_t op;
    double prescale;
    int wanted;  // of 2 and 3
  };
  for (const hvd_dtype_t dtype : {HVD_INT32, HVD_FLOAT32}) {
    for (const Case& one : {Case{HVD_MIN, -1, -3},
                            {HVD_MAX, -1, -2},
                            {HVD_MIN, 4, 8},
                            {HVD_MAX, 0.5, 1},
                            {HVD_MIN, 0, 0},
                            {HVD_PRODUCT, 2, 24}}) {
      // 3 * 0.5 is 1 as an integer.
      if (dtype == HVD_FLOAT32 && one.prescale == 0.5) continue;
      for (const bool group : {false, true}) {
        CAPTURE(dtype, one.op, one.prescale, group);
        PlainWorld world(3);
        CHECK(world.Run([&](Collectives& collectives) -> std::string {
          Floats x(RequestKind::kAllreduce, {5}, 0);
          const int mine = 2 + collectives.rank();
          for (float& value : x.data) {
            const auto as_float = static_cast<float>(mine);
            memcpy(&value, dtype == HVD_INT32 ? static_cast<const void*>(&mine) : &as_float, 4);
          }
          Signature& s = x.request.signature;
          s.dtype = dtype;
          s.op = one.op;
          s.prescale = one.prescale;
          if (group) {
            s.group_count = s.group_types = 1;
            RequestPart& part = x.request.buffers.parts.emplace_back();
            part.input = part.output = x.data.data();
            part.shape = {5};
          }
          const absl::Status status = x.RunJoined(&collectives, 1);
          if (!status.ok()) return status.ToString();
          int as_int = 0;
          memcpy(&as_int, &x.data[4], 4);
          const double got = dtype == HVD_INT32 ? as_int : x.data[4];
          if (collectives.rank() == 2 || got == one.wanted) return "";
          return std::to_string(got);
        }) == "");
      }
    }
  }
}

TEST_CASE("on a device what has no neutral value fails for those who asked, with the reason") {
  LogEntry entry;
  entry.contributors = 2;
  entry.signature.kind = RequestKind::kAllreduce;
  entry.signature.op = HVD_MIN;
  entry.signature.prescale = -1;
  CHECK(CheckJoined(entry, 3).ok());
  entry.signature.device_type = HVD_CUDA;
  CHECK(CheckJoined(entry, 2).ok());
  const absl::Status refused = CheckJoined(entry, 3);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(refused.message().find("1 of 3 ranks have joined") != std::string::npos);
}

TEST_CASE("compressed: each input is scaled before it is rounded, a result when it is wide again") {
  PlainWorld world(3);
  CHECK(world.Run([&](Collectives& collectives) -> std::string {
    for (const uint32_t op : {HVD_SUM, HVD_AVERAGE, HVD_MAX, HVD_ADASUM}) {
      Floats floats(RequestKind::kAllreduce, {5}, 1e9f);
      floats.request.signature.op = op;
      floats.request.signature.compression = HVD_COMPRESSION_FP16;
      floats.request.signature.prescale = 1e-6;
      floats.request.signature.postscale = 1e6;
      const absl::Status status = floats.Run(&collectives, 3);
      if (!status.ok()) return status.ToString();
      const double wanted = op == HVD_SUM ? 3e9 : 1e9;
      if (std::abs(floats.data[4] - wanted) > 1e-3 * wanted) {
        return "op " + std::to_string(op) + ": " + std::to_string(floats.data[4]);
      }
    }
    Floats scattered(RequestKind::kReduceScatter, {3}, 1e9f);
    float result = 0;
    scattered.request.buffers.output = &result;
    scattered.request.buffers.output_rows = 1;
    scattered.request.signature.compression = HVD_COMPRESSION_FP16;
    scattered.request.signature.prescale = 1e-6;
    scattered.request.signature.postscale = 1e6;
    const absl::Status status = scattered.Run(&collectives, 3);
    if (!status.ok()) return status.ToString();
    return std::abs(result - 3e9) < 3e6 ? "" : "scattered: " + std::to_string(result);
  }) == "");
}

TEST_CASE("a grouped allgather has each tensor's rows of each rank") {
  PlainWorld world(3);
  CHECK(world.Run([&](Collectives& collectives) -> std::string {
    const int rank = collectives.rank();
    std::vector<float> a(static_cast<size_t>(2 * rank), static_cast<float>(rank)), b(1, 7);
    Floats floats(RequestKind::kAllgather, {2, 1}, 0);
    floats.request.signature.group_count = 2;
    RequestPart part;
    part.input = a.data();
    part.shape = {rank, 2};
    floats.request.buffers.parts.push_back(part);
    part.input = b.data();
    part.shape = {1};
    floats.request.buffers.parts.push_back(part);
    const absl::Status status = floats.Run(&collectives, 3);
    if (!status.ok()) return status.ToString();
    const RequestPart& first = floats.request.buffers.parts[0];
    if (first.result_shape != std::vector<int64_t>{3, 2}) return "shape";
    if (Result(first.owned_result, 6) != std::vector<float>{1, 1, 2, 2, 2, 2}) return "rows";
    return Result(floats.request.buffers.parts[1].owned_result, 3) == std::vector<float>(3, 7)
               ? ""
               : "b";
  }) == "");
}

TEST_CASE("an allgather while some have joined has the others' rows") {
  for (const bool grouped : {false, true}) {
    PlainWorld world(3);
    CHECK(world.Run([&](Collectives& collectives) -> std::string {
      const int rows = collectives.rank() + 1;
      Floats floats(RequestKind::kAllgather, {rows, 2}, static_cast<float>(collectives.rank()));
      floats.request.buffers.output = nullptr;
      floats.entry.rows = {1, 2, 0};
      if (grouped) {
        RequestPart part;
        part.input = floats.data.data();
        part.shape = {rows, 2};
        floats.request.buffers.parts.push_back(part);
        floats.request.signature.group_count = 1;
        floats.request.signature.ndim = 1;
        floats.request.signature.shape = {2};
      }
      const absl::Status status = floats.RunJoined(&collectives, 1);
      if (!status.ok()) return status.ToString();
      if (collectives.rank() == 2) return "";
      const void* result =
          grouped ? floats.request.buffers.parts[0].owned_result : floats.request.result.owned;
      const auto& shape =
          grouped ? floats.request.buffers.parts[0].result_shape : floats.request.result.shape;
      if (shape != std::vector<int64_t>{3, 2}) return "shape";
      return Result(result, 6) == std::vector<float>{0, 0, 1, 1, 1, 1} ? "" : "rows";
    }) == "");
  }
}

TEST_CASE("Adasum of a group while a rank has joined") {
  PlainWorld world(3);
  CHECK(world.Run([&](Collectives& collectives) -> std::string {
    std::vector<float> a = {3, 4}, b(20, 1);
    Floats floats(RequestKind::kAllreduce, {2, 20}, 0);
    floats.request.signature.op = HVD_ADASUM;
    floats.request.signature.group_count = 2;
    for (std::vector<float>* tensor : {&a, &b}) {
      RequestPart part;
      part.input = part.output = tensor->data();
      part.shape = {static_cast<int64_t>(tensor->size())};
      floats.request.buffers.parts.push_back(part);
    }
    const absl::Status status = floats.RunJoined(&collectives, 1);
    if (!status.ok()) return status.ToString();
    if (collectives.rank() == 2) return "";
    return a == std::vector<float>{3, 4} && b == std::vector<float>(20, 1) ? "" : "wrong";
  }) == "");
}

TEST_CASE("a group is one reduction; its parts keep their places") {
  for (const uint32_t compression :
       {HVD_COMPRESSION_NONE, HVD_COMPRESSION_FP16, HVD_COMPRESSION_BF16}) {
    PlainWorld world(3);
    CHECK(world.Run([&](Collectives& collectives) -> std::string {
      std::vector<float> a(3, collectives.rank() + 1.0f), b(1, 10), c(5, 0.5f);
      Floats floats(RequestKind::kAllreduce, {3, 1, 5}, 0);
      floats.request.signature.group_count = 3;
      floats.request.signature.compression = compression;
      for (std::vector<float>* tensor : {&a, &b, &c}) {
        RequestPart part;
        part.input = part.output = tensor->data();
        part.shape = {static_cast<int64_t>(tensor->size())};
        floats.request.buffers.parts.push_back(part);
      }
      const absl::Status status = floats.Run(&collectives, 3);
      if (!status.ok()) return status.ToString();
      const bool right = a == std::vector<float>(3, 6) && b[0] == 30 && c[4] == 1.5f;
      return right ? "" : "wrong sums";
    }) == "");
  }
}

TEST_CASE("a reduce-scatter gives the first ranks one row more") {
  for (const uint32_t compression : {HVD_COMPRESSION_NONE, HVD_COMPRESSION_FP16}) {
    PlainWorld world(3);
    CHECK(world.Run([&](Collectives& collectives) -> std::string {
      Floats floats(RequestKind::kReduceScatter, {5, 2}, 1);
      for (int i = 0; i < 10; ++i) floats.data[i] = static_cast<float>(i);
      floats.request.buffers.output = nullptr;
      floats.request.signature.compression = compression;
      const absl::Status status = floats.Run(&collectives, 3);
      if (!status.ok()) return status.ToString();
      const int64_t rows = collectives.rank() < 2 ? 2 : 1;
      if (floats.request.result.shape != std::vector<int64_t>{rows, 2}) return "shape";
      const auto got = Result(floats.request.result.owned, static_cast<size_t>(rows) * 2);
      return got[0] == 3.0f * 4 * collectives.rank() ? "" : "value " + std::to_string(got[0]);
    }) == "");
  }
}

TEST_CASE("an alltoall with splits, and one with an output that does not fit") {
  PlainWorld world(3);
  CHECK(world.Run([&](Collectives& collectives) -> std::string {
    const int rank = collectives.rank();
    // Rank r sends r + p rows to rank p.
    Floats floats(RequestKind::kAlltoall, {3 * rank + 4, 2}, static_cast<float>(rank));
    floats.request.buffers.splits = {rank, rank + 1, rank + 2};
    std::vector<float> wrong(2);
    floats.request.buffers.output = rank == 1 ? wrong.data() : nullptr;
    floats.request.buffers.output_rows = 1;
    const absl::Status status = floats.Run(&collectives, 3);
    if (rank == 1) return absl::IsFailedPrecondition(status) ? "" : "must not fit";
    if (!status.ok()) return status.ToString();
    const std::vector<int64_t> wanted = {rank, rank + 1, rank + 2};
    if (floats.request.result.received_splits != wanted) return "received splits";
    const auto got = Result(floats.request.result.owned, static_cast<size_t>(3 * rank + 3) * 2);
    for (size_t row = 0, peer = 0; peer < 3; ++peer) {
      for (int64_t i = 0; i < wanted[peer]; ++i, ++row) {
        if (got[row * 2] != static_cast<float>(peer)) return "row " + std::to_string(row);
      }
    }
    return "";
  }) == "");
}

}  // namespace
}  // namespace hvd::rt
