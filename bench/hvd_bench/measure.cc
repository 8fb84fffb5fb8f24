// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/measure.h"

#include <algorithm>
#include <chrono>

#include "hvd/hvd.hpp"

namespace bench {

int IterationsFor(size_t bytes) {
  if (bytes <= 4096) return 2000;
  if (bytes <= 256 << 10) return 500;
  if (bytes <= 4 << 20) return 100;
  return bytes <= 128 << 20 ? 20 : 7;
}

double SlowestRank(const std::function<void()>& call) {
  hvd::barrier();
  const auto begin = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  double slowest = took.count();
  hvd::allreduce(&slowest, 1, hvd::Op::kMax, "bench.slowest");
  return slowest;
}

double TimeOne(Collective* collective) {
  collective->FillAlike();  // as a step of training does: the whole buffer is new
  const double took = SlowestRank([collective] { collective->Run(); });
  collective->CheckEnds();
  return took;
}

std::vector<double> Measure(int iterations, Collective* collective) {
  collective->FillPattern();
  collective->Run();
  collective->CheckAll();
  const int warm_up = std::max(2, iterations / 10);
  for (int i = 0; i < warm_up; ++i) TimeOne(collective);
  std::vector<double> times;
  for (int i = 0; i < iterations; ++i) times.push_back(TimeOne(collective));
  collective->CheckAll();
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace bench
