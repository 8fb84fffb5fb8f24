// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "runtime/check/check.h"

namespace hvd::rt {
namespace {

struct TestGroup {
  float floats[64] = {};
  int32_t ints[64] = {};
  std::vector<std::vector<int64_t>> shapes;
  std::vector<hvd_tensor_t> inputs, outputs;
  std::vector<int> ranks = {0, 1};
  hvd_options_t options = HVD_OPTIONS_INIT;

  explicit TestGroup(std::vector<std::pair<hvd_dtype_t, std::vector<int64_t>>> tensors) {
    for (const auto& [dtype, shape] : tensors) shapes.push_back(shape);
    int64_t at = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      hvd_tensor_t tensor = HVD_TENSOR_INIT;
      tensor.data = tensors[i].first == HVD_INT32 ? static_cast<void*>(ints + at) : floats + at;
      at += std::accumulate(shapes[i].begin(), shapes[i].end(), int64_t{1}, std::multiplies<>());
      tensor.dtype = tensors[i].first;
      tensor.shape = shapes[i].data();
      tensor.ndim = static_cast<int32_t>(shapes[i].size());
      inputs.push_back(tensor);
    }
  }
  absl::StatusOr<std::vector<std::unique_ptr<Request>>> Check(RequestKind kind) {
    GroupCall call;
    call.kind = kind;
    call.inputs = inputs.data();
    call.outputs = outputs.empty() ? nullptr : outputs.data();
    call.count = static_cast<int32_t>(inputs.size());
    call.options = options;
    return CheckGroup(call, {HVD_GLOBAL_PROCESS_SET, ranks, 0});
  }
};

TEST_CASE("a group is one request of several parts") {
  TestGroup group({{HVD_FLOAT32, {2, 3}}, {HVD_FLOAT32, {}}, {HVD_FLOAT32, {0}}});
  group.options.name = "g";
  const auto requests = group.Check(RequestKind::kAllreduce);
  REQUIRE(requests.ok());
  REQUIRE(requests->size() == 1);
  const Request& request = *requests->front();
  CHECK(request.name == "g");
  CHECK(request.signature.elements() == 7);
  CHECK(request.buffers.parts.size() == 3);
  CHECK(request.buffers.parts[0].output == request.buffers.parts[0].input);
  CHECK(Describe(request.signature) ==
        "grouped allreduce float32 3 tensors with elements [6,1,0] average");
}

TEST_CASE("dtypes of a group have a request each, and all know of the whole group") {
  TestGroup mixed({{HVD_FLOAT32, {2}}, {HVD_INT32, {3}}, {HVD_FLOAT32, {4}}});
  const auto requests = mixed.Check(RequestKind::kAllreduce);
  REQUIRE(requests.ok());
  REQUIRE(requests->size() == 2);
  const Request& ints = *requests->at(0);
  const Request& floats = *requests->at(1);
  CHECK(ints.signature.dtype == HVD_INT32);
  CHECK(ints.buffers.parts[0].position == 1);
  CHECK(floats.buffers.parts[1].position == 2);
  CHECK(ints.unnamed);
  CHECK(!floats.unnamed);
  CHECK(PlainName(NamePart("g", HVD_FLOAT32)) == "g (float32)");
  CHECK(IsReserved(NamePart("g", HVD_FLOAT32)));
  CHECK(NamePart("unnamed call 1", HVD_INT8) != NamePart("\x01unnamed call 1", HVD_INT8));

  TestGroup other({{HVD_FLOAT32, {2}}, {HVD_INT32, {3}}, {HVD_FLOAT32, {5}}});
  const auto others = other.Check(RequestKind::kAllreduce);
  REQUIRE(others.ok());
  CHECK(others->at(0)->signature.group_hash != ints.signature.group_hash);
}

TEST_CASE("a large group's last number is the rest") {
  TestGroup group(std::vector<std::pair<hvd_dtype_t, std::vector<int64_t>>>(
      20, {HVD_FLOAT32, std::vector<int64_t>{2}}));
  const auto requests = group.Check(RequestKind::kAllreduce);
  REQUIRE(requests.ok());
  const Signature& signature = requests->front()->signature;
  CHECK(signature.group_count == 20);
  CHECK(signature.ndim == kMaxDimensions);
  CHECK(signature.shape[15] == 10);
  CHECK(signature.elements() == 40);
}

TEST_CASE("rows of a grouped allgather are each rank's own") {
  TestGroup two({{HVD_FLOAT32, {2, 3}}}), four({{HVD_FLOAT32, {4, 3}}}),
      wide({{HVD_FLOAT32, {2, 4}}});
  const auto a = two.Check(RequestKind::kAllgather);
  const auto b = four.Check(RequestKind::kAllgather);
  const auto c = wide.Check(RequestKind::kAllgather);
  REQUIRE((a.ok() && b.ok() && c.ok()));
  CHECK(a->front()->signature.group_hash == b->front()->signature.group_hash);
  CHECK(a->front()->signature.group_hash != c->front()->signature.group_hash);
}

TEST_CASE("what is wrong with a group names the tensor") {
  TestGroup group({{HVD_FLOAT32, {2}}, {HVD_FLOAT32, {-2}}});
  const auto requests = group.Check(RequestKind::kAllreduce);
  CHECK(requests.status().message() == "tensor 1 of the group: input.shape[0] is negative");
  TestGroup none({});
  CHECK(none.Check(RequestKind::kAllreduce).status().message().find("inputs is NULL") == 0);
}

// Returns what is said of a group with these inputs and outputs, each of `count` floats.
std::string Said(RequestKind kind, const std::vector<const float*>& inputs,
                 const std::vector<const float*>& outputs, int64_t count) {
  TestGroup group(std::vector<std::pair<hvd_dtype_t, std::vector<int64_t>>>(
      inputs.size(), {HVD_FLOAT32, std::vector<int64_t>{count}}));
  for (size_t i = 0; i < inputs.size(); ++i) {
    group.inputs[i].data = const_cast<float*>(inputs[i]);
    if (outputs.empty()) continue;
    group.outputs.push_back(group.inputs[i]);
    group.outputs[i].data = const_cast<float*>(outputs[i]);
  }
  const auto requests = group.Check(kind);
  CHECK((requests.ok() || absl::IsInvalidArgument(requests.status())));
  return std::string(requests.status().message());
}

TEST_CASE("no tensor of a group writes what another reads or writes") {
  const float data[100] = {};
  const auto at = [&data](int i) { return data + i; };
  constexpr auto kAllreduce = RequestKind::kAllreduce;
  const std::string advice = " of the group overlap; give each output memory of its own";
  CHECK(Said(kAllreduce, {at(0), at(10)}, {at(20), at(29)}, 10) ==
        "the outputs of tensors 0 and 1" + advice);
  CHECK(Said(kAllreduce, {at(0), at(10), at(30)}, {at(40), at(60), at(11)}, 10) ==
        "the output of tensor 2 and the input of tensor 1" + advice);
  CHECK(Said(kAllreduce, {at(0), at(5)}, {}, 10) == "the outputs of tensors 0 and 1" + advice);
  CHECK(Said(kAllreduce, {at(0), at(0)}, {at(0), at(50)}, 10) ==
        "the output of tensor 0 and the input of tensor 1" + advice);
  CHECK(Said(RequestKind::kAllgather, {at(0), at(10)}, {at(20), at(15)}, 5) == "");
  CHECK(Said(RequestKind::kAllgather, {at(0), at(10)}, {at(20), at(3)}, 5) ==
        "the output of tensor 1 and the input of tensor 0" + advice);
}

TEST_CASE("tensors of a group may lie side by side, be in place and have one input") {
  const float data[100] = {};
  const auto at = [&data](int i) { return data + i; };
  constexpr auto kAllreduce = RequestKind::kAllreduce;
  CHECK(Said(kAllreduce, {at(10), at(0), at(20)}, {}, 10) == "");
  CHECK(Said(kAllreduce, {at(10), at(0)}, {at(10), at(0)}, 10) == "");
  CHECK(Said(kAllreduce, {at(0), at(0), at(3)}, {at(20), at(30), at(40)}, 10) == "");
  CHECK(Said(RequestKind::kAllgather, {at(0), at(0)}, {}, 10) == "");
  CHECK(Said(kAllreduce, {at(0), at(0)}, {}, 0) == "");
}

}  // namespace
}  // namespace hvd::rt
