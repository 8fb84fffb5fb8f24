// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/held_watch.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

TimePoint At(double seconds) {
  return TimePoint() + std::chrono::hours(1) +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

TEST_CASE("how long a process is held counts from the first look, and anew once it went on") {
  HeldWatch watch;
  CHECK(watch.Take({3}, At(0))[0].held_s == 0);
  const auto held = watch.Take({3, 5}, At(2));
  REQUIRE(held.size() == 2);
  CHECK(held[0].slot == 3);
  CHECK(held[0].held_s == Approx(2));
  CHECK(held[1].held_s == 0);
  CHECK(watch.Take({5}, At(3))[0].held_s == Approx(1));
  CHECK(watch.Take({3}, At(4))[0].held_s == 0);
}

TEST_CASE("a process that is held is told of at each multiple of the limit") {
  HeldWatch watch;
  int told = 0;
  for (int second = 0; second <= 35; ++second) {
    told += watch.Due(watch.Take({1}, At(second)), 10, At(second));
  }
  CHECK(told == 3);
  CHECK_FALSE(watch.Due(watch.Take({}, At(40)), 10, At(40)));
}

}  // namespace
}  // namespace hvd::daemon
