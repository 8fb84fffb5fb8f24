// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/check.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <limits>

namespace hvd::rt {
namespace {

struct TestCall {
  float data[6] = {};
  int64_t shape[2] = {2, 3};
  hvd_tensor_t input = HVD_TENSOR_INIT;
  hvd_tensor_t output = HVD_TENSOR_INIT;
  hvd_options_t options = HVD_OPTIONS_INIT;
  std::vector<int> ranks = {0, 1, 2, 3};
  int32_t set = HVD_GLOBAL_PROCESS_SET;
  int index = 0;
  std::vector<int64_t> splits;
  Request request;

  TestCall() {
    input.data = data;
    input.shape = shape;
    input.ndim = 2;
    output = input;
  }
  absl::Status Check(RequestKind kind) {
    request.name.clear();
    Call call;
    if (absl::Status read = ReadOptions(&options, &call.options); !read.ok()) return read;
    call.kind = kind;
    call.input = &input;
    call.output = &output;
    call.splits = splits.empty() ? nullptr : splits.data();
    call.split_count = static_cast<int32_t>(splits.size());
    return CheckCall(call, {set, ranks, index}, &request);
  }
  std::string Complaint(RequestKind kind) { return std::string(Check(kind).message()); }
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a good call becomes a request") {
  TestCall call;
  call.options.name = "grad";
  call.options.op = HVD_SUM;
  REQUIRE(call.Check(RequestKind::kAllreduce).ok());
  CHECK(call.request.name == "grad");
  CHECK(Describe(call.request.signature) == "allreduce float32 [2,3] sum");
  CHECK(call.request.buffers.output == call.data);
}

TEST_CASE("each bad argument is named") {
  TestCall call;
  const auto kAllreduce = RequestKind::kAllreduce;
  SECTION("dtype") {
    call.input.dtype = 77;
    CHECK(Contains(call.Complaint(kAllreduce), "unknown dtype 77"));
  }
  SECTION("op") {
    call.options.op = 9;
    CHECK(Contains(call.Complaint(kAllreduce), "options.op is the unknown 9"));
  }
  SECTION("compression") {
    call.options.compression = 3;
    CHECK(Contains(call.Complaint(kAllreduce), "options.compression is the unknown 3"));
  }
  SECTION("flags") {
    call.options.flags = 8 | HVD_REFUSE_JOINED;
    CHECK(Contains(call.Complaint(kAllreduce), "options.flags has unknown bits: 10"));
    call.options.flags = HVD_AVERAGE_OVER_CONTRIBUTORS;
    CHECK(Contains(call.Complaint(RequestKind::kBroadcast), "options.flags: average over contrib"));
  }
  SECTION("memory for results") {
    call.options.result_fn = [](void*, const int64_t*, int32_t, int32_t, int32_t) -> void* {
      return nullptr;
    };
    CHECK(Contains(call.Complaint(kAllreduce), "options.result_fn is for allgather, alltoall"));
    CHECK(Contains(call.Complaint(RequestKind::kAllgather), "options.result_fn and an output"));
  }
  SECTION("a flag of another op") {
    call.options.flags = HVD_AVERAGE_OVER_CONTRIBUTORS;
    call.options.op = HVD_SUM;
    CHECK(Contains(call.Complaint(kAllreduce), "options.op is not average"));
  }
  SECTION("scales") {
    call.options.prescale = std::numeric_limits<double>::infinity();
    CHECK(Contains(call.Complaint(kAllreduce), "options.prescale is not a finite number"));
    call.options.prescale = 2;
    CHECK(Contains(call.Complaint(RequestKind::kBroadcast), "options.prescale is for reductions"));
  }
  SECTION("reserved") {
    call.options.reserved = 1;
    CHECK(Contains(call.Complaint(kAllreduce), "options.reserved"));
  }
  SECTION("adasum of integers") {
    call.input.dtype = call.output.dtype = HVD_INT32;
    call.options.op = HVD_ADASUM;
    CHECK(Contains(call.Complaint(kAllreduce), "float64 tensors, not int32"));
    CHECK(Contains(call.Complaint(RequestKind::kReduceScatter), "allreduce only"));
  }
  SECTION("splits") {
    const auto kAlltoall = RequestKind::kAlltoall;
    float place[6] = {};
    call.output.data = place;
    CHECK(Contains(call.Complaint(kAlltoall), "2 rows cannot be divided evenly among 4"));
    call.splits = {1, 1};
    CHECK(Contains(call.Complaint(kAlltoall), "nsplits is 2"));
    call.splits = {1, 0, -1, 0};
    CHECK(Contains(call.Complaint(kAlltoall), "splits[2] is -1"));
    call.splits = {1, 0, 1, 1};
    CHECK(Contains(call.Complaint(kAlltoall), "splits[3] is 1; only 0 of input's 2 rows"));
  }
  SECTION("average of bool") {
    call.input.dtype = call.output.dtype = HVD_BOOL;
    CHECK(Contains(call.Complaint(kAllreduce), "no average"));
  }
  SECTION("bits of floats") {
    call.options.op = HVD_BXOR;
    CHECK(
        Contains(call.Complaint(kAllreduce),
                 "options.op: bitwise exclusive or is for integer and bool tensors, not float32"));
    call.input.dtype = call.output.dtype = HVD_FLOAT8_E5M2;
    CHECK(Contains(call.Complaint(kAllreduce), "not float8_e5m2"));
  }
  SECTION("scaled bits") {
    call.input.dtype = call.output.dtype = HVD_UINT64;
    call.options.op = HVD_BAND;
    call.options.postscale = 2;
    CHECK(
        Contains(call.Complaint(kAllreduce), "options.postscale: a bitwise and cannot be scaled"));
  }
  SECTION("order of complex numbers") {
    call.input.dtype = call.output.dtype = HVD_COMPLEX64;
    call.options.op = HVD_MIN;
    CHECK(Contains(call.Complaint(kAllreduce), "complex64 tensors have no min"));
    call.options.op = HVD_ADASUM;
    CHECK(Contains(call.Complaint(kAllreduce), "not complex64"));
  }
  SECTION("negative dimension") {
    call.shape[1] = -1;
    CHECK(Contains(call.Complaint(kAllreduce), "shape[1] is negative"));
  }
  SECTION("overflow") {
    call.shape[0] = call.shape[1] = int64_t{1} << 40;
    CHECK(Contains(call.Complaint(kAllreduce), "more elements than memory"));
  }
  SECTION("too many dimensions") {
    call.input.ndim = 17;
    CHECK(Contains(call.Complaint(kAllreduce), "17 dimensions"));
  }
  SECTION("no data") {
    call.input.data = nullptr;
    CHECK(Contains(call.Complaint(kAllreduce), "input.data is NULL"));
  }
  SECTION("struct size") {
    call.input.struct_size = 3;
    CHECK(Contains(call.Complaint(kAllreduce), "HVD_*_INIT"));
  }
  SECTION("device") {
    call.input.device_type = 7;
    CHECK(Contains(call.Complaint(kAllreduce), "input lies on the unknown device type 7"));
  }
  SECTION("an event of what lies on no GPU") {
    call.options.ready_event = &call;
    CHECK(Contains(call.Complaint(kAllreduce), "options.ready_event is for tensors on a GPU"));
  }
  SECTION("root") {
    call.options.root = 4;
    CHECK(Contains(call.Complaint(RequestKind::kBroadcast), "rank 4 is not one of the 4 ranks"));
    call.set = 3;
    call.ranks = {1, 3};
    call.options.root = 2;
    CHECK(Contains(call.Complaint(RequestKind::kBroadcast), "members of process set 3"));
  }
  SECTION("scalar gather") {
    call.input.ndim = 0;
    CHECK(Contains(call.Complaint(RequestKind::kAllgather), "scalar"));
    CHECK(Contains(call.Complaint(RequestKind::kReduceScatter), "scalar"));
    CHECK(Contains(call.Complaint(RequestKind::kAlltoall), "scalar"));
  }
  SECTION("output of another shape") {
    int64_t other[2] = {3, 3};
    call.output.shape = other;
    CHECK(Contains(call.Complaint(kAllreduce), "dtype and shape"));
  }
}

TEST_CASE("a root is a global rank, and has an index in its set") {
  TestCall call;
  call.set = 1;
  call.ranks = {1, 3};
  call.options.root = 3;
  REQUIRE(call.Check(RequestKind::kBroadcast).ok());
  CHECK(call.request.signature.root == 3);
  CHECK(call.request.root_index == 1);
}

TEST_CASE("an older caller's options have defaults for what it lacks") {
  TestCall call;
  call.options.struct_size = offsetof(hvd_options_t, prescale);
  call.options.prescale = -77;  // what lies behind its struct
  REQUIRE(call.Check(RequestKind::kAllreduce).ok());
  CHECK(call.request.signature.prescale == 1);
  call.options.struct_size = sizeof(hvd_options_t) + 8;
  CHECK(Contains(call.Complaint(RequestKind::kAllreduce), "options.struct_size"));
}

TEST_CASE("a reduce-scatter's first ranks get one row more") {
  TestCall call;
  float place[6] = {};
  call.output.data = place;
  call.ranks = {0, 1, 2};
  call.shape[0] = 5;
  for (const auto& [index, rows] : {std::pair{0, 2}, {1, 2}, {2, 1}}) {
    call.index = index;
    int64_t mine[2] = {rows, 3};
    call.output.shape = mine;
    CHECK(call.Check(RequestKind::kReduceScatter).ok());
    mine[0] = 3;
    CHECK(Contains(call.Complaint(RequestKind::kReduceScatter),
                   "output has 3 rows; this rank gets " + std::to_string(rows) + " of 5"));
  }
}

TEST_CASE("16-bit and integer tensors are not compressed") {
  TestCall call;
  call.options.compression = HVD_COMPRESSION_BF16;
  REQUIRE(call.Check(RequestKind::kAllreduce).ok());
  CHECK(call.request.signature.compression == HVD_COMPRESSION_BF16);
  call.input.dtype = call.output.dtype = HVD_INT32;
  REQUIRE(call.Check(RequestKind::kAllreduce).ok());
  CHECK(call.request.signature.compression == HVD_COMPRESSION_NONE);
}

TEST_CASE(
    "a gather's input may be its rank's rows of the output, a scatter's output those of the "
    "input") {
  TestCall call;
  float place[60] = {};
  call.ranks = {3, 5};
  call.index = 1;
  int64_t twice[2] = {2 * call.shape[0], call.shape[1]};
  call.output.shape = twice;
  call.output.data = place;
  for (int at = 0; at <= 6; ++at) {
    INFO(at);
    call.input.data = place + at;
    CHECK(call.Check(RequestKind::kAllgather).ok());  // where exactly, the exchange tells
  }
  call.input.data = place + 7;  // beyond the end
  CHECK(Contains(call.Complaint(RequestKind::kAllgather), "its rows there"));
  call.input = call.output;
  call.input.data = place;
  call.output.shape = call.shape;
  for (int at = 0; at <= 12; ++at) {
    call.output.data = place + at;
    CHECK(call.Check(RequestKind::kReduceScatter).ok() == (at == 6 || at == 12));
  }
}

TEST_CASE("input and output are the same memory or have nothing in common") {
  TestCall call;
  float place[30] = {};
  call.input.data = place + 10;
  for (const auto kind : {RequestKind::kAllreduce, RequestKind::kBroadcast, RequestKind::kAllgather,
                          RequestKind::kReduceScatter, RequestKind::kAlltoall}) {
    INFO(KindName(kind));
    const bool scatters = kind == RequestKind::kReduceScatter;
    call.ranks = scatters ? std::vector<int>{0} : std::vector<int>{0, 1};
    for (int at = 0; at <= 20; ++at) {
      INFO(at);
      call.output.data = place + at;
      const bool in_place = at == 10 && kind != RequestKind::kAlltoall;
      const bool fine = at <= 4 || at >= 16 || in_place;
      CHECK(call.Check(kind).ok() == fine);
      if (!fine) CHECK(Contains(call.Complaint(kind), "input and output overlap"));
    }
  }
  call.shape[0] = 0;  // nothing lies anywhere
  call.output.data = place + 11;
  CHECK(call.Check(RequestKind::kAllreduce).ok());
}

TEST_CASE("no elements need no memory") {
  TestCall call;
  call.shape[0] = 0;
  call.input.data = call.output.data = nullptr;
  CHECK(call.Check(RequestKind::kAllreduce).ok());
}

}  // namespace
}  // namespace hvd::rt
