// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/growing_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "tests/system/programs/address_space.h"

namespace hvd::rt {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kStretch = GrowingMap::kLeastStretch;

// A sparse file, which holds one byte: 7, at `marked`.
struct Source {
  explicit Source(uint64_t bytes, uint64_t marked = 0) : file(memfd_create("map", MFD_CLOEXEC)) {
    const char mark = 7;
    REQUIRE(ftruncate(file.get(), static_cast<off_t>(bytes)) == 0);
    REQUIRE(pwrite(file.get(), &mark, 1, static_cast<off_t>(marked)) == 1);
    map.SetFile({file.get(), bytes, 3});
  }
  std::byte* Show(uint64_t at, uint64_t bytes) { return map.Show(at, bytes, &why); }

  Descriptor file;
  GrowingMap map{GrowingMap::InChildren::kSeen};
  MapRefusal why;
};

// Something of another's right behind, so that nothing can grow there.
void Block(std::byte* at) {
  REQUIRE(mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
          at);
}

TEST_CASE("nothing is mapped before it is met, and then a stretch") {
  Source source(8 * kGiB);
  CHECK(source.map.mapped_bytes() == 0);
  CHECK(source.map.Find(0, 1) == nullptr);
  CHECK(source.map.At(nullptr, 0) == -1);
  std::byte* const seen = source.Show(100, 8);
  REQUIRE(seen != nullptr);
  CHECK(source.map.mapped_bytes() == kStretch);
  CHECK(source.map.Find(100, 8) == seen);
  CHECK(source.map.At(seen, 8) == 100);
  CHECK(source.map.Find(0, kStretch) == seen - 100);
  CHECK(source.map.Find(0, kStretch + 1) == nullptr);
  CHECK(source.map.At(seen - 100, kStretch + 1) == -1);
  CHECK(source.map.Find(UINT64_MAX, 2) == nullptr);
  CHECK(source.map.Find(1, UINT64_MAX) == nullptr);
}

TEST_CASE("a view grows in place, by no less than half of it up to 256 MB") {
  Source source(8 * kGiB, kStretch + 5);
  std::byte* const begin = source.Show(0, 1);
  CHECK(source.Show(kStretch - 1, 7) == begin + kStretch - 1);
  CHECK(source.map.mapped_bytes() == 2 * kStretch);
  CHECK(begin[kStretch + 5] == std::byte{7});
  CHECK(source.Show(3 * kStretch, kGiB) == begin + 3 * kStretch);
  CHECK(source.map.mapped_bytes() == 3 * kStretch + kGiB);
  CHECK(source.Show(3 * kStretch + kGiB, 1) == begin + 3 * kStretch + kGiB);
  CHECK(source.map.mapped_bytes() == 3 * kStretch + kGiB + GrowingMap::kMostStretch);
}

TEST_CASE("where something is in the way there is another view, and the old one stays") {
  Source source(kGiB, 50 * kMiB);
  std::byte* const first = source.Show(0, 1);
  Block(first + kStretch);
  std::byte* const wide = source.Show(30 * kMiB, 40 * kMiB);
  REQUIRE(wide != nullptr);
  CHECK(wide != first + 30 * kMiB);
  CHECK(wide[20 * kMiB] == std::byte{7});
  CHECK(source.map.At(wide, 40 * kMiB) == static_cast<int64_t>(30 * kMiB));
  // A piece that was found once is found there again.
  CHECK(source.map.Find(31 * kMiB, 10) == first + 31 * kMiB);
  CHECK(source.map.At(first + 31 * kMiB, 10) == static_cast<int64_t>(31 * kMiB));
  first[31 * kMiB] = std::byte{9};
  CHECK(wide[kMiB] == std::byte{9});  // the same memory
  // The new one grows.
  CHECK(source.Show(60 * kMiB, 100 * kMiB) == wide + 30 * kMiB);
  munmap(first + kStretch, 4096);
}

TEST_CASE("what lies far behind, or before, has a view of its own") {
  Source source(8 * kGiB, 7 * kGiB);
  std::byte* const far = source.Show(7 * kGiB, 1);
  REQUIRE(far != nullptr);
  CHECK(*far == std::byte{7});
  CHECK(source.map.mapped_bytes() == kStretch);
  REQUIRE(source.Show(0, 1) != nullptr);
  CHECK(source.map.mapped_bytes() == 2 * kStretch);
  CHECK(source.map.Find(7 * kGiB, 1) == far);
}

TEST_CASE("nothing is mapped beyond the file's end") {
  Source source(40 * kMiB);
  REQUIRE(source.Show(0, 1) != nullptr);
  CHECK(source.Show(40 * kMiB, 0) == nullptr);
  CHECK(source.why.error == 0);
  CHECK(source.Show(kMiB, 40 * kMiB) == nullptr);
  CHECK(source.Show(40 * kMiB - 1, 1) != nullptr);
  CHECK(source.map.mapped_bytes() == 40 * kMiB);
  Source odd(5000);
  CHECK(odd.Show(4096, 904) != nullptr);
  CHECK(odd.Show(4096, 905) == nullptr);
  CHECK(odd.map.mapped_bytes() == 5000);
}

// In a child, whose limit it is. Returns what `f` does.
template <class F>
int InChild(F f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a refusal names its size, and smaller stretches go on") {
  Source source(8 * kGiB);
  std::byte* const begin = source.Show(0, 1);
  CHECK(InChild([&] {
          LimitAddressSpace(100 * kMiB);
          if (source.Show(kStretch, kGiB) != nullptr) return 1;
          if (source.why.error != ENOMEM || source.why.bytes < kGiB) return 2;
          if (source.map.Find(0, 1) != begin) return 3;
          // Not as much as a generous stretch.
          LimitAddressSpace(2 * kMiB);
          if (source.Show(kStretch, kMiB) != begin + kStretch) return 4;
          if (source.map.mapped_bytes() != kStretch + kMiB) return 5;
          // A refusal is over when the limit is.
          LiftLimit();
          return source.Show(kStretch, kGiB) == begin + kStretch ? 0 : 6;
        }) == 0);
}

TEST_CASE("a forked child has copies of all views") {
  Source source(8 * kGiB);
  std::byte* const first = source.Show(0, 1);
  std::byte* const far = source.Show(7 * kGiB, 1);
  CHECK(InChild([&] {
          source.map.DetachChild();
          first[0] = far[0] = std::byte{1};
          return 0;
        }) == 0);
  CHECK(first[0] == std::byte{7});
  CHECK(far[0] == std::byte{0});
}

TEST_CASE("others find their places while a view grows") {
  Source source(8 * kGiB);
  std::byte* const begin = source.Show(0, 1);
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      uint64_t at = 0;
      do {
        std::byte* const found = source.map.Find(at, 8);
        if (found == nullptr) continue;
        wrong += found != begin + at || source.map.At(found, 8) != static_cast<int64_t>(at);
        at = (at + 5 * kMiB) % (4 * kGiB);
      } while (!ends);
    });
  }
  for (uint64_t at = 0; at < 4 * kGiB; at += 16 * kMiB) wrong += source.Show(at, 64) != begin + at;
  ends = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace hvd::rt
