// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/apart.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "runtime/session/arena_space.h"

namespace hvd::rt {
namespace {

constexpr uint64_t kCycle = kArenaPlaces * ArenaSpace::kHugePage;
// ThreadSanitizer has no shadow for low addresses, and maps at null what should lie there.
constexpr bool kHighOnly = HVD_HIGH_ADDRESSES_ONLY;  // the build's word
// The system maps downwards from the top: a program's own gigabytes come before this.
constexpr uint64_t kLeftToOthers = uint64_t{1} << (kHighOnly ? 36 : 40);
constexpr uintptr_t kLowest = kHighOnly ? 0x7e8000000000 : 0;
// How many addresses a place has: more where another mapping is in the way.
constexpr uint64_t kTries = 8;

void* Map(void* at, int fd, uint64_t begin, uint64_t bytes) {
  const int where = at != nullptr ? MAP_FIXED_NOREPLACE : 0;
  void* address =
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | where, fd, static_cast<off_t>(begin));
  if (address == MAP_FAILED) return nullptr;
  if (at == nullptr || address == at) return address;
  munmap(address, bytes);  // a kernel before 4.17, or a sanitizer, takes it for a wish
  errno = EEXIST;
  return nullptr;
}

// Where the system maps things by itself; the same for the process's life. 0: it maps nothing.
uintptr_t Anchor() {
  static std::atomic<uintptr_t> anchor{0};
  const uintptr_t known = anchor.load(std::memory_order_relaxed);
  if (known != 0) return known;
  void* trial = mmap(nullptr, ArenaSpace::kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (trial == MAP_FAILED) return 0;
  munmap(trial, ArenaSpace::kPage);
  uintptr_t first = 0;
  const auto mine = reinterpret_cast<uintptr_t>(trial);
  return anchor.compare_exchange_strong(first, mine) ? mine : first;
}

}  // namespace

void* MapApart(const ApartFile& file, uint64_t begin, uint64_t bytes) {
  const uint64_t room = (file.bytes / kCycle + 2) * kCycle;
  const uintptr_t anchor = Anchor();
  const auto place = static_cast<uint64_t>(file.place) % kArenaPlaces;
  for (uint64_t t = 0; t < kTries; ++t) {
    const uint64_t below = kLeftToOthers + room * (t * kArenaPlaces + place + 1);
    if (anchor < kLowest || below >= anchor - kLowest) break;
    const uintptr_t base = (anchor - below) / kCycle * kCycle + place * ArenaSpace::kHugePage;
    void* const address = Map(reinterpret_cast<void*>(base + begin), file.fd, begin, bytes);
    if (address != nullptr) return address;
    if (errno != EEXIST) break;
  }
  return Map(nullptr, file.fd, begin, bytes);
}

bool MapBehind(const ApartFile& file, std::byte* at, uint64_t begin, uint64_t bytes) {
  return Map(at, file.fd, begin, bytes) != nullptr;
}

}  // namespace hvd::rt
