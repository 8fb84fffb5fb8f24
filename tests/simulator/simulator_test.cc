// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/simulator/world.h"

namespace hvd::rt::simulator {
namespace {

std::string RunSeeds(int seeds, const Size& size, Stats* stats) {
  std::string violations;
  for (int seed = 1; seed <= seeds; ++seed) {
    World world(Plan::Draw(static_cast<uint64_t>(seed), size));
    violations += world.Run();
    stats->Add(world.stats());
  }
  return violations;
}

TEST_CASE("small jobs of every shape agree, and end") {
  Stats stats;
  const std::vector<Size> sizes = {{1, 1}, {1, 4},       {2, 1},  {2, 3, true},
                                   {5, 2}, {9, 3, true}, {20, 1}, {3, 8, true}};
  for (const Size& size : sizes) CHECK(RunSeeds(100, size, &stats) == "");
  CHECK(stats.aborted_worlds > 0);
  CHECK(stats.decisions > 10000);
}

TEST_CASE("4096 ranks on 512 hosts agree, with few messages") {
  Stats stats;
  CHECK(RunSeeds(30, {512, 8}, &stats) == "");
  // The root sends one message a child and batch, and one more now and then to retire ids.
  CHECK(stats.root_messages < stats.root_children * 11 / 10);
  CHECK(stats.other_messages < 5 * stats.other_batches);
}

TEST_CASE("many tensors pending in opposite orders all come to their end") {
  const std::vector<Size> sizes = {{1, 2}, {1, 5}, {2, 1}, {2, 2}, {5, 2, true}, {20, 1}};
  for (int seed = 1; seed <= 8; ++seed) {
    for (const Size& size : sizes) {
      World world(Plan::DrawCrowd(static_cast<uint64_t>(seed), size, 600));
      CHECK(world.Run() == "");
      CHECK(world.stats().decisions > 1200);
    }
  }
}

TEST_CASE("more tensors than may be pending end the epoch on all hosts, and nobody waits") {
  for (int seed = 1; seed <= 8; ++seed) {
    for (const Size& size : {Size{1, 2}, Size{2, 1}, Size{5, 2, true}, Size{20, 1}}) {
      Plan plan = Plan::DrawCrowd(static_cast<uint64_t>(seed), size, 600);
      plan.most_pending = 50;
      plan.passes_limit = true;
      World world(plan);
      CHECK(world.Run() == "");
      CHECK(world.stats().aborted_worlds == 1);
    }
  }
}

}  // namespace
}  // namespace hvd::rt::simulator
