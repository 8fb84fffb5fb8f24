// SPDX-License-Identifier: Apache-2.0
// Runs simulated elastic jobs: simulate_elastic FIRST LAST [MUTANT|none
// [commits|apart|without-init]]. Says what was violated, then how often what happened, as a line of
// JSON. For a single seed, it says all that happens.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/simulator/elastic/job.h"

namespace {

namespace sim = hvd::elastic_simulator;

// kCount: there is none of this name.
sim::Mutant MutantNamed(const char* name) {
  int mutant = 0;
  while (mutant < static_cast<int>(sim::Mutant::kCount) &&
         strcmp(name, sim::NameOf(static_cast<sim::Mutant>(mutant))) != 0) {
    ++mutant;
  }
  return static_cast<sim::Mutant>(mutant);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t first = argc > 2 ? strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t last = argc > 2 ? strtoull(argv[2], nullptr, 10) : 0;
  const sim::Mutant mutant = argc > 3 ? MutantNamed(argv[3]) : sim::Mutant::kNone;
  const bool commits = argc > 4 && strcmp(argv[4], "commits") == 0;
  const bool apart = argc > 4 && strcmp(argv[4], "apart") == 0;
  const bool without_init = argc > 4 && strcmp(argv[4], "without-init") == 0;
  if (first == 0 || last < first || mutant == sim::Mutant::kCount ||
      (argc > 4 && !commits && !apart && !without_init)) {
    fprintf(stderr,
            "usage: simulate_elastic FIRST LAST [MUTANT|none [commits|apart|without-init]]\n");
    return 2;
  }
  const bool tells = first == last;
  const auto draw = commits        ? sim::Scenario::DrawCommits
                    : apart        ? sim::Scenario::DrawApart
                    : without_init ? sim::Scenario::DrawWithoutInit
                                   : sim::Scenario::Draw;
  const auto start = std::chrono::steady_clock::now();
  sim::Counts counts;
  int violations = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const sim::Outcome outcome = RunJob(draw(seed), mutant, &counts, tells);
    if (outcome.violation == sim::Violation::kNone) continue;
    ++violations;
    printf("%s\n", outcome.text.c_str());
    fflush(stdout);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  printf("{\"first\": %llu, \"last\": %llu, \"seconds\": %.1f, \"violations\": %d",
         static_cast<unsigned long long>(first), static_cast<unsigned long long>(last),
         took.count(), violations);
  for (const auto& [what, times] : counts.all()) {
    printf(", \"%s\": %llu", what.c_str(), static_cast<unsigned long long>(times));
  }
  printf("}\n");
  return violations == 0 ? 0 : 1;
}
