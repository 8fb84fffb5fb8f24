// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/apart.h"

#include <sys/mman.h>

#include "runtime/session/arena_space.h"

namespace hvd {
namespace {

constexpr uint64_t kCycle = kArenaPlaces * ArenaSpace::kHugePage;

void* MapShared(void* at, int fd, uint64_t bytes) {
  const int where = at != nullptr ? MAP_FIXED : 0;
  void* address = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | where, fd, 0);
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace

void* MapAtPlace(int fd, uint64_t bytes, int place) {
  bytes = (bytes + ArenaSpace::kPage - 1) / ArenaSpace::kPage * ArenaSpace::kPage;
  const uint64_t room = bytes + kCycle;
  void* reserved =
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MapShared(nullptr, fd, bytes);
  auto* const begin = static_cast<std::byte*>(reserved);
  const uint64_t wanted = static_cast<uint64_t>(place) % kArenaPlaces * ArenaSpace::kHugePage;
  const uint64_t skipped = (wanted - reinterpret_cast<uintptr_t>(begin)) % kCycle;
  void* const address = MapShared(begin + skipped, fd, bytes);
  if (address == nullptr) {
    munmap(reserved, room);
    return nullptr;
  }
  std::byte* const end = begin + skipped + bytes;
  if (skipped > 0) munmap(begin, skipped);
  if (end < begin + room) munmap(end, static_cast<size_t>(begin + room - end));
  return address;
}

}  // namespace hvd
