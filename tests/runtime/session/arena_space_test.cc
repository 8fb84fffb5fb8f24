// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/arena_space.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace hvd::rt {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST_CASE("pieces begin at a line, a page or a huge page, by their size") {
  ArenaSpace space(64 * kMiB);
  CHECK(*space.Take(1) % 64 == 0);
  CHECK(*space.Take(100) % 64 == 0);
  CHECK(*space.Take(4096) % 4096 == 0);
  CHECK(*space.Take(5000) % 4096 == 0);
  CHECK(*space.Take(2 * kMiB) % (2 * kMiB) == 0);
  CHECK(*space.Take(3 * kMiB + 1) % (2 * kMiB) == 0);
}

TEST_CASE("no bytes are a piece of their own") {
  ArenaSpace space(kMiB);
  const auto a = space.Take(0), b = space.Take(0);
  REQUIRE((a && b));
  CHECK(*a != *b);
  CHECK(space.Give(*a)->bytes == 64);
}

TEST_CASE("what does not fit is refused, and what fits exactly is given") {
  ArenaSpace space(kMiB);
  CHECK_FALSE(space.Take(kMiB + 1));
  CHECK_FALSE(space.Take(UINT64_MAX));
  const auto all = space.Take(kMiB);
  REQUIRE(all);
  CHECK_FALSE(space.Take(1));
  CHECK(space.Give(*all)->bytes == kMiB);
  CHECK(space.Take(kMiB));
}

TEST_CASE("only the beginning of a piece in use can be given back, once") {
  ArenaSpace space(kMiB);
  const auto piece = space.Take(1000);
  CHECK_FALSE(space.Give(*piece + 64));
  CHECK(space.Give(*piece)->bytes == 1024);
  CHECK_FALSE(space.Give(*piece));
  CHECK_FALSE(space.Give(512 * 1024));
}

TEST_CASE("neighbours grow together, whatever the order in which they are freed") {
  for (const std::vector<int>& order : std::vector<std::vector<int>>{
           {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    ArenaSpace space(3 * 4096);
    std::vector<uint64_t> pieces;
    for (int i = 0; i < 3; ++i) pieces.push_back(*space.Take(4096));
    CHECK(space.free_ranges() == 0);
    for (const int i : order) REQUIRE(space.Give(pieces[i]));
    CHECK(space.free_ranges() == 1);
    CHECK(space.Take(3 * 4096));
  }
}

TEST_CASE("the smallest hole that fits is taken") {
  ArenaSpace space(kMiB);
  const uint64_t wide = *space.Take(64 * 1024);
  space.Take(4096);
  const uint64_t narrow = *space.Take(8 * 1024);
  space.Take(4096);
  space.Give(wide);
  space.Give(narrow);
  CHECK(*space.Take(8 * 1024) == narrow);
}

// Every byte has one owner at most, whatever comes and goes; at the end all is one range again.
TEST_CASE("random traffic never overlaps and leaves nothing behind") {
  constexpr uint64_t kBytes = 32 * kMiB;
  std::mt19937 random(7);
  ArenaSpace space(kBytes);
  std::map<uint64_t, uint64_t> pieces;
  for (int i = 0; i < 20000; ++i) {
    if (!pieces.empty() && random() % 2 == 0) {
      auto at = pieces.lower_bound(random() % kBytes);
      if (at == pieces.end()) at = pieces.begin();
      REQUIRE(space.Give(at->first)->bytes >= at->second);
      pieces.erase(at);
      continue;
    }
    const uint64_t bytes = random() % (uint64_t{1} << (random() % 23));
    const auto taken = space.Take(bytes);
    if (!taken) continue;
    const auto after = pieces.lower_bound(*taken);
    if (after != pieces.end()) REQUIRE(*taken + bytes <= after->first);
    if (after != pieces.begin()) {
      const auto before = std::prev(after);
      REQUIRE(before->first + before->second <= *taken);
    }
    REQUIRE(*taken + bytes <= kBytes);
    pieces[*taken] = bytes;
  }
  REQUIRE(space.pieces() == pieces.size());
  for (const auto& [offset, bytes] : pieces) space.Give(offset);
  CHECK(space.taken() == 0);
  CHECK(space.free_ranges() == 1);
}

}  // namespace
}  // namespace hvd::rt
