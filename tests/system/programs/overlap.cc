// SPDX-License-Identifier: Apache-2.0
// A step that computes while it reduces: times the computation, the allreduce, and both at once,
// and prints the last beside the longer of the first two as a JSON line on rank 0.
// Usage: overlap [MEGABYTES [STEPS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

// Arithmetic in the cache, a unit at a time; what it gives is looked at so that it is not left out.
float Compute(size_t units) {
  static std::vector<float> x(4096, 1.0f);
  for (size_t unit = 0; unit < units; ++unit) {
    for (float& value : x) value = value * 0.999f + 0.001f;
  }
  return x[units % x.size()];
}

// The slowest rank's median.
template <class Step>
double TimeSteps(int steps, const Step& step) {
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    hvd::barrier();
    const Clock::time_point start = Clock::now();
    step();
    seconds.push_back(Seconds(start));
  }
  std::sort(seconds.begin(), seconds.end());
  std::vector<double> median = {seconds[seconds.size() / 2]};
  hvd::allreduce(median, hvd::Op::kMax, "median");
  return median[0];
}

}  // namespace

int main(int argc, char** argv) {
  try {
    hvd::Session session;
    const size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 16;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 3;
    std::vector<float> gradients(megabytes * (size_t{1} << 20) / sizeof(float), 1.0f);
    const auto reduce = [&] { hvd::allreduce(gradients, hvd::Op::kAverage, "gradients"); };
    reduce();
    const double communicate = TimeSteps(steps, reduce);
    const Clock::time_point start = Clock::now();
    float keep = Compute(20000);
    std::vector<double> units = {20000 * communicate / Seconds(start)};
    hvd::allreduce(units, hvd::Op::kAverage, "units");
    const auto count = static_cast<size_t>(units[0]);
    const double compute = TimeSteps(steps, [&] { keep += Compute(count); });
    const double both = TimeSteps(steps, [&] {
      hvd::Handle handle = hvd::allreduce_async(gradients, hvd::Op::kAverage, "gradients");
      keep += Compute(count);
      handle.wait();
    });
    if (hvd::rank() == 0) {
      std::printf("{\"compute_ms\":%.2f,\"communicate_ms\":%.2f,\"step_ms\":%.2f,\"ratio\":%.3f}\n",
                  compute * 1e3, communicate * 1e3, both * 1e3,
                  both / std::max(compute, communicate));
    }
    return keep == keep && gradients[0] == 1.0f ? 0 : 1;
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "overlap: %s\n", error.what());
    return 1;
  }
}
