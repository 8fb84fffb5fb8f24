// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/progress_watch.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

const TimePoint kStart = TimePoint() + std::chrono::hours(1);
TimePoint At(double seconds) {
  return kStart +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

RankProgress In(int rank, int set, uint64_t work, uint64_t moves, uint64_t calls) {
  RankProgress progress;
  progress.local_rank = rank;
  progress.set = set;
  progress.work = work;
  progress.moves = moves;
  progress.calls = calls;
  return progress;
}

TEST_CASE("a rank stands still while nothing of what it counts changes") {
  ProgressWatch watch;
  CHECK(watch.Take({In(0, 0, 7, 3, 6)}, At(0))[0].still_s == 0);
  CHECK(watch.Take({In(0, 0, 7, 3, 6)}, At(2))[0].still_s == Approx(2));
  CHECK(watch.Take({In(0, 0, 7, 4, 6)}, At(3))[0].still_s == 0);
  CHECK(watch.Take({In(0, 0, 7, 4, 6)}, At(4))[0].still_s == Approx(1));
  CHECK(watch.Take({In(0, 0, 0, 4, 6)}, At(5))[0].still_s == 0);
  CHECK(watch.Take({In(0, 0, 0, 4, 7)}, At(6))[0].still_s == 0);
}

TEST_CASE("a rank that had nothing under way meanwhile begins anew") {
  ProgressWatch watch;
  watch.Take({In(0, 0, 7, 3, 6)}, At(0));
  watch.Take({}, At(5));
  CHECK(watch.Take({In(0, 0, 7, 3, 6)}, At(6))[0].still_s == 0);
}

TEST_CASE("a process set stands still since its last rank moved; another does not count for it") {
  ProgressWatch watch;
  watch.Take({In(0, 0, 7, 3, 6), In(1, 0, 7, 3, 6), In(1, 2, 0, 0, 1)}, At(0));
  CHECK(StillBySet(watch.Take({In(0, 0, 7, 3, 6), In(1, 0, 7, 5, 6)}, At(4))) ==
        std::vector<double>{0});
  const auto ranks = watch.Take({In(0, 0, 7, 3, 6), In(1, 0, 7, 5, 6), In(1, 2, 0, 1, 1)}, At(9));
  CHECK(ranks[0].still_s == Approx(9));
  CHECK(StillBySet(ranks) == std::vector<double>{5, 0});
  CHECK(StillBySet({}).empty());
}

TEST_CASE("a device stands still for itself, while its rank goes on") {
  ProgressWatch watch;
  RankProgress device = In(0, 0, 4, 0, 0);
  device.on_device = true;
  watch.Take({device, In(0, 0, 7, 3, 6)}, At(0));
  const auto seen = watch.Take({device, In(0, 0, 8, 4, 7)}, At(5));
  CHECK(seen[0].still_s == Approx(5));
  CHECK(seen[1].still_s == 0);
  CHECK(StillBySet(seen) == std::vector<double>{5, 0});
  ++device.work;
  CHECK(watch.Take({device}, At(6))[0].still_s == 0);
}

}  // namespace
}  // namespace hvd::daemon
