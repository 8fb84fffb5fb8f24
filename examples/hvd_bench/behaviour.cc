#include "examples/hvd_bench/behaviour.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "examples/hvd_bench/measure.h"
#include "examples/hvd_bench/report.h"
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

// What the call cost this rank; of the ranks that count, the largest.
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
    // What nobody reads the compiler may leave out.
    sink_ = values_[0];
  }
  // Units that take so long when nothing else runs.
  int64_t UnitsFor(double us) {
    constexpr int64_t kTried = 20000;
    Do(kTried);
    const auto begin = std::chrono::steady_clock::now();
    Do(kTried);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    return static_cast<int64_t>(us / took.count() * kTried);
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

Overlap MeasureOverlap(const Plan& plan, int steps) {
  const auto collective = MakeCollective(plan);
  Overlap overlap;
  overlap.communicate_us = Median(Measure(steps, collective.get()));
  Work work;
  const int64_t units = work.UnitsFor(overlap.communicate_us);
  overlap.compute_us = SlowestRank([&] { work.Do(units); });
  for (int step = 0; step < steps; ++step) {
    collective->FillAlike();
    overlap.both_us.push_back(SlowestRank([&] {
      collective->Begin();
      work.Do(units);
      collective->End();
    }));
    collective->CheckEnds();
  }
  std::sort(overlap.both_us.begin(), overlap.both_us.end());
  return overlap;
}

}  // namespace bench
