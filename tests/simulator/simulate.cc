// SPDX-License-Identifier: Apache-2.0
// Runs simulated jobs: simulate SEEDS [HOSTS RANKS_PER_HOST [FIRST_SEED]]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/simulator/world.h"

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? atoi(argv[1]) : 1000;
  hvd::rt::simulator::Size size;
  size.hosts = argc > 2 ? atoi(argv[2]) : 512;
  size.ranks_per_host = argc > 3 ? atoi(argv[3]) : 8;
  const int first = argc > 4 ? atoi(argv[4]) : 1;
  if (seeds < 1 || size.hosts < 1 || size.ranks_per_host < 1 || size.ranks_per_host > 128) {
    fprintf(stderr, "usage: simulate SEEDS [HOSTS RANKS_PER_HOST [FIRST_SEED]]\n");
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  hvd::rt::simulator::Stats stats;
  int violations = 0;
  for (int seed = first; seed < first + seeds; ++seed) {
    hvd::rt::simulator::World world(
        hvd::rt::simulator::Plan::Draw(static_cast<uint64_t>(seed), size));
    const std::string violation = world.Run();
    stats.Add(world.stats());
    if (violation.empty()) continue;
    ++violations;
    printf("%s\n", violation.c_str());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  printf("%d seeds of %d hosts with %d ranks each: %d violations, %.1f s\n", seeds, size.hosts,
         size.ranks_per_host, violations, took.count());
  printf("%llu marks, %llu entries in %llu batches, %llu worlds ended by a rank that left\n",
         static_cast<unsigned long long>(stats.marks),
         static_cast<unsigned long long>(stats.decisions),
         static_cast<unsigned long long>(stats.batches),
         static_cast<unsigned long long>(stats.aborted_worlds));
  const double root = static_cast<double>(stats.root_messages);
  const double other = static_cast<double>(stats.other_messages);
  printf(
      "messages a batch: the root %.2f (it has %.2f children), other hosts %.2f each; "
      "%.0f bytes each\n",
      root / static_cast<double>(stats.batches),
      static_cast<double>(stats.root_children) / static_cast<double>(stats.batches),
      other / static_cast<double>(stats.other_batches),
      static_cast<double>(stats.bytes) / (root + other));
  return violations == 0 ? 0 : 1;
}
