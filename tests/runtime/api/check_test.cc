#include "runtime/api/check.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

struct TestCall {
  float data[6] = {};
  int64_t shape[2] = {2, 3};
  hvd_tensor_t input = HVD_TENSOR_INIT;
  hvd_tensor_t output = HVD_TENSOR_INIT;
  hvd_options_t options = HVD_OPTIONS_INIT;
  Request request;

  TestCall() {
    input.data = data;
    input.shape = shape;
    input.ndim = 2;
    output = input;
  }
  absl::Status Check(RequestKind kind) {
    request.name.clear();
    return CheckCall({kind, &input, &output, &options}, 4, &request);
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
  CHECK(call.request.output == call.data);
}

TEST_CASE("each bad argument is named") {
  TestCall call;
  const auto kAllreduce = RequestKind::kAllreduce;
  SECTION("dtype") {
    call.input.dtype = 77;
    CHECK(Contains(call.Complaint(kAllreduce), "unknown dtype 77"));
  }
  SECTION("op") {
    call.options.op = 2;
    CHECK(Contains(call.Complaint(kAllreduce), "unknown 2"));
  }
  SECTION("average of bool") {
    call.input.dtype = call.output.dtype = HVD_BOOL;
    CHECK(Contains(call.Complaint(kAllreduce), "no average"));
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
  SECTION("GPU") {
    call.input.device_type = HVD_CUDA;
    CHECK(absl::IsUnimplemented(call.Check(kAllreduce)));
  }
  SECTION("process set") {
    call.options.process_set = 1;
    CHECK(absl::IsUnimplemented(call.Check(kAllreduce)));
  }
  SECTION("root") {
    call.options.root = 4;
    CHECK(Contains(call.Complaint(RequestKind::kBroadcast), "root rank 4 is not one of the 4"));
  }
  SECTION("scalar gather") {
    call.input.ndim = 0;
    CHECK(Contains(call.Complaint(RequestKind::kAllgather), "scalar"));
  }
  SECTION("output of another shape") {
    int64_t other[2] = {3, 3};
    call.output.shape = other;
    CHECK(Contains(call.Complaint(kAllreduce), "dtype and shape"));
  }
}

TEST_CASE("no elements need no memory") {
  TestCall call;
  call.shape[0] = 0;
  call.input.data = call.output.data = nullptr;
  CHECK(call.Check(RequestKind::kAllreduce).ok());
}

}  // namespace
}  // namespace hvd
