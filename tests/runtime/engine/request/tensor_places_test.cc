// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/tensor_places.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

void Fill(Request* request, void* input, void* output, int64_t count) {
  request->signature.kind = RequestKind::kAllreduce;
  request->signature.dtype = HVD_FLOAT32;
  request->signature.ndim = 1;
  request->signature.shape[0] = count;
  request->buffers.input = input;
  request->buffers.output = output;
}

TEST_CASE("a request is offered when its input and its output lie in the arena as a whole") {
  Arena arena;
  auto memory = arena.Allocate(4096);
  REQUIRE(memory.ok());
  auto* inside = static_cast<float*>(*memory);
  const auto arenas = HostArenas::Map({{}}, 0, &arena);
  const int64_t at = arena.At(inside, 4096);
  std::vector<float> outside(1024);

  Request in_place, apart, half, beyond, other_kind, group;
  Fill(&in_place, inside, inside, 1024);
  CHECK(OffsetsInArena(in_place, arenas.get()).input == at);
  CHECK(OffsetsInArena(in_place, arenas.get()).output == at);
  CHECK(OffsetsInArena(in_place, nullptr).input == -1);
  Fill(&apart, inside, inside + 512, 512);
  CHECK(OffsetsInArena(apart, arenas.get()).output == at + 2048);
  Fill(&half, outside.data(), inside, 512);
  CHECK(OffsetsInArena(half, arenas.get()).output == -1);
  const auto all = static_cast<int64_t>(arena.Share().bytes / 4);
  Fill(&beyond, inside + 1, inside + 1, all);
  CHECK(OffsetsInArena(beyond, arenas.get()).input == -1);
  Fill(&other_kind, inside, inside, 1024);
  other_kind.signature.kind = RequestKind::kBroadcast;
  CHECK(OffsetsInArena(other_kind, arenas.get()).input == at);
  other_kind.signature.kind = RequestKind::kAllgather;
  CHECK(OffsetsInArena(other_kind, arenas.get()).input == -1);
  Fill(&group, inside, inside, 1024);
  group.signature.group_count = 1;
  CHECK(OffsetsInArena(group, arenas.get()).input == -1);
}

TEST_CASE("an input that is only read is offered wherever the output lies") {
  Arena arena;
  auto memory = arena.Allocate(4096);
  REQUIRE(memory.ok());
  auto* inside = static_cast<float*>(*memory);
  const auto arenas = HostArenas::Map({{}}, 0, &arena);
  std::vector<float> outside(1024);
  Request gather, device, group;
  Fill(&gather, inside + 1, outside.data(), 512);
  gather.signature.kind = RequestKind::kAllgather;
  CHECK(InputInArena(gather, arenas.get()) == arena.At(inside + 1, 4));
  CHECK(InputInArena(gather, nullptr) == -1);
  Fill(&device, inside, inside, 512);
  device.signature.device_type = HVD_CUDA;
  CHECK(InputInArena(device, arenas.get()) == -1);
  Fill(&group, inside, inside, 512);
  group.signature.group_count = 2;
  CHECK(InputInArena(group, arenas.get()) == -1);
}

}  // namespace
}  // namespace hvd
