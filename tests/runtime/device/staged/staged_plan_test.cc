// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_plan.h"

#include <catch2/catch.hpp>
#include <string>

namespace hvd::rt {
namespace {

// Where tensors lie on a device; nobody looks there.
std::byte* At(uintptr_t address) { return reinterpret_cast<std::byte*>(address); }
std::byte* const kInput = At(0x1000000);
std::byte* const kOutput = At(0x9000000);
std::byte* const kHost = At(0x70000000);

std::unique_ptr<Request> Ask(RequestKind kind, int64_t rows) {
  auto request = std::make_unique<Request>();
  request->signature.kind = kind;
  request->signature.dtype = HVD_FLOAT32;
  request->signature.device_type = HVD_CUDA;
  request->signature.ndim = 1;
  request->signature.shape[0] = rows;
  request->name = "x";
  request->buffers.input = kInput;
  request->buffers.output = kOutput;
  return request;
}

using Requests = std::vector<std::unique_ptr<Request>>;

Requests One(std::unique_ptr<Request> request) {
  Requests all;
  all.push_back(std::move(request));
  return all;
}

std::vector<std::unique_ptr<StagedRequest>> Make(const Requests& asked, const StagedPlan& plan) {
  return MakeStagedRequests(
      *asked[0], plan.tensors[0], {0, kHost, asked[0]->name},
      {[](void*, const int64_t*, int32_t, int32_t, int32_t) -> void* { return nullptr; }, nullptr});
}

TEST_CASE("an elementwise call lies in one place of the host, in and out") {
  const auto asked = One(Ask(RequestKind::kAllreduce, 100));
  const StagedPlan plan = PlanStaging(asked, {0, 2});
  CHECK(plan.bytes == 448);
  const auto made = Make(asked, plan);
  REQUIRE(made.size() == 1);
  const Request& request = made[0]->request;
  CHECK(request.signature.device_type == HVD_CPU);
  CHECK(request.name == kPartName + std::string("x"));
  CHECK(request.buffers.input == kHost);
  CHECK(request.buffers.output == kHost);
  REQUIRE(made[0]->in.size() == 1);
  CHECK(made[0]->in[0].device == kInput);
  CHECK(made[0]->in[0].bytes == 400);
  REQUIRE(made[0]->back.size() == 1);
  CHECK(made[0]->back[0].device == kOutput);
  CHECK(made[0]->back[0].at == 0);
}

TEST_CASE("a large one travels in pieces that cover it once, in and back") {
  const int64_t rows = GENERATE(int64_t{2 << 20} + 1, int64_t{5} << 20, (int64_t{7} << 20) + 3);
  const auto asked = One(Ask(RequestKind::kAllreduce, rows));
  const auto made = Make(asked, PlanStaging(asked, {0, 2}));
  size_t at = 0;
  for (const auto& piece : made) {
    const size_t bytes = static_cast<size_t>(piece->request.signature.shape[0]) * 4;
    CHECK(bytes <= kStagedPieceBytes);
    REQUIRE(piece->in.size() == 1);
    CHECK(piece->in[0].at == at);
    CHECK(piece->in[0].device == kInput + at);
    CHECK(piece->in[0].bytes == bytes);
    CHECK(piece->back[0].device == kOutput + at);
    CHECK(piece->request.buffers.input == kHost + at);
    at += bytes;
  }
  CHECK(at == static_cast<size_t>(rows) * 4);
  CHECK(made[0]->request.name != made[1]->request.name);
}

TEST_CASE("what is not a sum of its elements stays whole") {
  auto request = Ask(RequestKind::kAllreduce, 5 << 20);
  SECTION("Adasum") { request->signature.op = HVD_ADASUM; }
  SECTION("a gather") { request->signature.kind = RequestKind::kAllgather; }
  const auto asked = One(std::move(request));
  CHECK(Make(asked, PlanStaging(asked, {0, 2})).size() == 1);
}

TEST_CASE("only the root of a broadcast brings its tensor") {
  auto request = Ask(RequestKind::kBroadcast, 10);
  request->root_index = 1;
  const int index = GENERATE(0, 1);
  const bool in_place = GENERATE(true, false);
  if (in_place) request->buffers.output = kInput;
  const auto asked = One(std::move(request));
  const auto made = Make(asked, PlanStaging(asked, {index, 2}));
  CHECK(made[0]->in.size() == (index == 1 ? 1U : 0U));
  CHECK(made[0]->back.size() == (index == 1 && in_place ? 0U : 1U));
}

TEST_CASE("what is in place on the device is in place on the host") {
  SECTION("a gather's input among its output's rows") {
    auto request = Ask(RequestKind::kAllgather, 8);
    request->buffers.output = kInput - 32;
    request->buffers.output_rows = 16;
    const auto asked = One(std::move(request));
    const auto made = Make(asked, PlanStaging(asked, {1, 2}));
    CHECK(made[0]->request.buffers.output == kHost);
    CHECK(made[0]->request.buffers.input == kHost + 32);
    CHECK(made[0]->back[0].bytes == 64);
  }
  SECTION("a scatter's output among its input's") {
    auto request = Ask(RequestKind::kReduceScatter, 9);
    request->buffers.output = kInput + 20;
    const auto asked = One(std::move(request));
    const auto made = Make(asked, PlanStaging(asked, {1, 2}));
    CHECK(made[0]->request.buffers.input == kHost);
    CHECK(made[0]->request.buffers.output == kHost + 20);
    CHECK(made[0]->back[0].bytes == 16);
  }
}

TEST_CASE("a result of unknown size is asked for when it is known") {
  auto request = Ask(RequestKind::kAllgather, 8);
  request->buffers.output = nullptr;
  const auto asked = One(std::move(request));
  const auto made = Make(asked, PlanStaging(asked, {1, 2}));
  CHECK(made[0]->request.buffers.output == nullptr);
  CHECK(made[0]->request.buffers.source.give != nullptr);
  CHECK(made[0]->back.empty());
}

TEST_CASE("the tensors of a group lie side by side, and keep their positions") {
  auto request = Ask(RequestKind::kAllreduce, 0);
  request->signature.group_count = 2;
  for (const int i : {0, 1}) {
    RequestPart part;
    part.input = part.output = kInput + ptrdiff_t{i} * 4096;
    part.shape = {10 + i};
    part.position = 5 - i;
    request->buffers.parts.push_back(std::move(part));
  }
  const auto asked = One(std::move(request));
  const auto made = Make(asked, PlanStaging(asked, {0, 2}));
  REQUIRE(made.size() == 1);
  const std::vector<RequestPart>& parts = made[0]->request.buffers.parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].input == kHost);
  CHECK(parts[1].input == kHost + 64);
  CHECK(parts[1].position == 4);
  CHECK(made[0]->in.size() == 2);
  CHECK(made[0]->back[1].device == kInput + 4096);
}

TEST_CASE("a send and a receive keep their peer and tag, and go one way each") {
  auto request = Ask(RequestKind::kSend, 4);
  const bool sends = GENERATE(true, false);
  request->signature.kind = sends ? RequestKind::kSend : RequestKind::kReceive;
  request->name.clear();
  request->peer = 1;
  request->tag = 7;
  request->buffers.output = sends ? nullptr : kInput;
  const auto asked = One(std::move(request));
  const auto made = Make(asked, PlanStaging(asked, {0, 2}));
  CHECK(made[0]->request.peer == 1);
  CHECK(made[0]->request.tag == 7);
  CHECK(made[0]->request.name.empty());
  CHECK(made[0]->in.empty() == !sends);
  CHECK(made[0]->back.empty() == sends);
}

}  // namespace
}  // namespace hvd::rt
