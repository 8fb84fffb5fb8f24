// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/tensor_places.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/system/programs/address_space.h"

namespace hvd::rt {
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

TEST_CASE("a mark that says nonsense is told from a tensor for which there is no address space") {
  constexpr size_t kMiB = size_t{1} << 20;
  Arena other;
  const ArenaFile file = other.Share();
  const auto arenas = HostArenas::Map({{}, {dup(file.fd), file.bytes}}, 0, nullptr);
  const TensorPlaces places(arenas.get(), {{0, 4}, {1, 5}}, 0);
  CHECK(places.Address(1, 4096, 8).ok());
  CHECK(absl::IsInternal(places.Address(1, -1, 8).status()));
  const auto end = static_cast<int64_t>(file.bytes);
  CHECK(absl::IsInternal(places.Address(1, end, 8).status()));
  CHECK(absl::IsInternal(places.Address(1, end - 4, 8).status()));
  const pid_t child = fork();
  if (child == 0) {
    LimitAddressSpace();
    const absl::Status refused = places.Address(1, 4096, 200 * kMiB).status();
    const std::string why(refused.message());
    const bool right = absl::IsResourceExhausted(refused) &&
                       why.find("rank 4 cannot map a tensor of 200 MB of rank 5: ") == 0 &&
                       why.find(" MB of address space are needed") < why.find("(ulimit -v ") &&
                       absl::IsInternal(places.Address(1, end, 8).status());
    LiftLimit();
    _exit(right && places.Address(1, 4096, 200 * kMiB).ok() ? 0 : 1);
  }
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace
}  // namespace hvd::rt
