// SPDX-License-Identifier: Apache-2.0
// Measures a commit: of a state of 100 MB against one memcpy of as many bytes, and the agreement
// alone (hvd_check_hosts). Lines of JSON from rank 0; a call's time is the slowest rank's. The
// state's memory is there before anything is timed: a host keeps two copies, and their pages stay.
//   hvdrun -np 2 build/bin/commit_bench [megabytes]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double Once(const std::function<void()>& call) {
  hvd::barrier();
  const auto begin = Clock::now();
  call();
  double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  hvd::allreduce(&us, 1, hvd::Op::kMax, "time");
  return us;
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void MeasureCommit(size_t bytes) {
  std::vector<float> weights(bytes / sizeof(float), 1), copy(weights.size(), 2);
  hvd::State state;
  state.add("weights", weights);
  state.sync();
  for (int i = 0; i < 4; ++i) state.commit();
  const auto rewrite = [&](int turn) {
    std::fill(weights.begin(), weights.end(), static_cast<float>(turn));
  };
  std::vector<double> commits, copies;
  for (int turn = 0; turn < 15; ++turn) {  // by turns, so that both see the machine alike
    rewrite(turn);
    commits.push_back(Once([&] { state.commit(); }));
    rewrite(turn);
    // One rank's whole copy: the others wait.
    copies.push_back(Once([&] {
      if (hvd::rank() == 0) std::memcpy(copy.data(), weights.data(), bytes);
    }));
  }
  if (hvd::rank() != 0) return;
  const double commit = Median(commits), memcpy_us = Median(copies);
  std::printf(
      "{\"op\":\"commit\",\"np\":%d,\"local_size\":%d,\"bytes\":%zu,\"us_p50\":%.1f,"
      "\"memcpy_us_p50\":%.1f,\"of_memcpy_by_ranks\":%.3f}\n",
      hvd::size(), hvd::local_size(), bytes, commit, memcpy_us,
      commit / (memcpy_us / hvd::local_size()));
}

// Many calls in a row; they keep the ranks together by themselves.
void MeasureAgreement() {
  constexpr int kCalls = 1000;
  constexpr int kRounds = 11;
  std::vector<double> rounds;
  rounds.reserve(kRounds);
  for (int round = 0; round < kRounds; ++round) {
    rounds.push_back(Once([] {
                       for (int i = 0; i < kCalls; ++i) hvd::check_hosts();
                     }) /
                     kCalls);
  }
  if (hvd::rank() != 0) return;
  std::printf("{\"op\":\"agreement\",\"np\":%d,\"us_p50\":%.2f}\n", hvd::size(), Median(rounds));
}

}  // namespace

int main(int argc, char** argv) {
  const size_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
  try {
    hvd::Session session;
    MeasureCommit(megabytes * 1000 * 1000);
    MeasureAgreement();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "commit_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
