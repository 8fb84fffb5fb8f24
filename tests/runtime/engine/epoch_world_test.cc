// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/epoch_world.h"

#include <catch2/catch.hpp>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST_CASE("the host's memory has at most 64 MB a rank at first, however many ranks and hosts") {
  for (int local_size = 1; local_size <= kMaxLocalRanks; ++local_size) {
    for (const int hosts : {1, 2, 16}) {
      const Topology job(std::vector<HostShape>(hosts, {"a", local_size}));
      INFO(local_size << " ranks on each of " << hosts << " hosts");
      REQUIRE(SetMemory::FirstBytes(job, 0) <= 64 * kMiB * local_size);
    }
  }
}

TEST_CASE("process sets take memory when they are made, and give it back when they go") {
  const std::string problems =
      test::RunWorlds({{"a", 2}}, [](std::unique_ptr<EpochWorld> job, test::Problems& problems) {
        std::atomic<uint64_t>& taken = job->page()->taken;
        problems.Expect(taken.load() <= 128 * kMiB, "more than 64 MB a rank at first");
        for (int round = 0; round < 3; ++round) {
          const uint64_t before = taken.load();
          problems.Expect(job->collectives().Barrier().ok(), "barrier");
          auto set = EpochWorld::ForSet(job.get(), {1, {0, 1}, round + 1});
          problems.Expect(set.ok(), set.status().ToString());
          if (!set.ok()) return;
          problems.Expect(taken.load() > before, "no memory of its own");
          auto& collectives = (*set)->collectives();
          problems.Expect(collectives.Barrier().ok(), "barrier");
          // Zeroed: what the set before has agreed is not in the log.
          problems.Expect(!(*set)->board().HasOpen(), "not zeroed");
          problems.Expect(collectives.Barrier().ok(), "barrier");
          problems.Expect((*set)->board().Mark("x", {}).ok(), "mark");
          problems.Expect(collectives.Barrier().ok(), "barrier");
          problems.Expect(job->collectives().Barrier().ok(), "barrier");
          (*set)->GiveMemoryBack();
          problems.Expect(job->collectives().Barrier().ok(), "barrier");
          problems.Expect(job->page()->region_at[1].load() == 0, "not given back");
          problems.Expect(job->collectives().Barrier().ok(), "barrier");
        }
      });
  CHECK(problems == "");
}

}  // namespace
}  // namespace hvd::rt
