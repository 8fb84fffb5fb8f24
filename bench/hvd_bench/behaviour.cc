// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/behaviour.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "bench/hvd_bench/measure.h"
#include "bench/hvd_bench/report.h"
#include "hvd/hvd.hpp"

namespace bench {
namespace {

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Returns the share of a core that the call cost this rank; of the ranks that count, the largest.
template <class Call>
Usage Watch(double seconds, bool counts, Call call) {
  hvd::barrier();
  const double before = CpuSeconds();
  call();
  double percent = counts ? (CpuSeconds() - before) / seconds * 100 : 0;
  hvd::allreduce(&percent, 1, hvd::Op::kMax, "bench.percent");
  return {seconds, percent};
}

// Work that stays in the registers and the first cache.
class Work {
 public:
  void Do(int64_t units) {
    for (; units > 0; --units) {
      for (float& value : values_) value = value * 0.999F + 0.001F;
    }
    // The compiler may leave out values that nobody reads.
    sink_ = values_[0];
  }
  // Units that take about so long. Tried for long enough that the processor has its usual speed.
  int64_t UnitsFor(double us) {
    constexpr double kTriedUs = 20000;
    for (int64_t units = 1000;; units *= 2) {
      const auto begin = std::chrono::steady_clock::now();
      Do(units);
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      if (took.count() >= kTriedUs) {
        return static_cast<int64_t>(us / took.count() * static_cast<double>(units));
      }
    }
  }

 private:
  std::array<float, 1024> values_ = {};
  volatile float sink_ = 0;
};

}  // namespace

Usage MeasureIdle(double seconds) {
  return Watch(seconds, true, [seconds] { Sleep(seconds); });
}

Usage MeasureLate(double seconds) {
  const bool late = hvd::rank() == 0;
  return Watch(seconds, !late, [seconds, late] {
    if (late) Sleep(seconds);
    double nothing = 0;
    hvd::allreduce(&nothing, 1, hvd::Op::kSum, "bench.late");
  });
}

// The three take turns, so that what else the machine does meets them alike.
Overlap MeasureOverlap(const Plan& plan, int steps) {
  const auto collective = MakeCollective(plan);
  Work work;
  const double wanted_us = Median(Measure(steps, collective.get()));
  double units = static_cast<double>(work.UnitsFor(wanted_us));
  hvd::allreduce(&units, 1, hvd::Op::kMin, "bench.units");
  const auto compute = [&] { work.Do(static_cast<int64_t>(units)); };
  units *= wanted_us / SlowestRank(compute);  // beside the others, who compute too
  std::vector<double> compute_us;
  std::vector<double> communicate_us;
  Overlap overlap;
  for (int step = 0; step < steps; ++step) {
    compute_us.push_back(SlowestRank(compute));
    communicate_us.push_back(TimeOne(collective.get()));
    collective->FillAlike();
    overlap.both_us.push_back(SlowestRank([&] {
      collective->Begin();
      compute();
      collective->End();
    }));
    collective->CheckEnds();
  }
  for (auto* times : {&compute_us, &communicate_us, &overlap.both_us}) {
    std::sort(times->begin(), times->end());
  }
  overlap.compute_us = Median(compute_us);
  overlap.communicate_us = Median(communicate_us);
  return overlap;
}

}  // namespace bench
