#include <catch2/catch.hpp>

#include "runtime/api/check.h"

namespace hvd {
namespace {

struct TestGroup {
  float floats[64] = {};
  int32_t ints[64] = {};
  std::vector<std::vector<int64_t>> shapes;
  std::vector<hvd_tensor_t> inputs;
  std::vector<int> ranks = {0, 1};
  hvd_options_t options = HVD_OPTIONS_INIT;

  explicit TestGroup(std::vector<std::pair<hvd_dtype_t, std::vector<int64_t>>> tensors) {
    for (const auto& [dtype, shape] : tensors) shapes.push_back(shape);
    for (size_t i = 0; i < tensors.size(); ++i) {
      hvd_tensor_t tensor = HVD_TENSOR_INIT;
      tensor.data = tensors[i].first == HVD_INT32 ? static_cast<void*>(ints) : floats;
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
  CHECK(request.parts.size() == 3);
  CHECK(request.parts[0].output == request.parts[0].input);
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
  CHECK(ints.parts[0].position == 1);
  CHECK(floats.parts[1].position == 2);
  CHECK(ints.unnamed);
  CHECK(!floats.unnamed);
  CHECK(NamePart("g", HVD_FLOAT32) == "g (float32)");

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

}  // namespace
}  // namespace hvd
