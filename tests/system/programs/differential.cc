// SPDX-License-Identifier: Apache-2.0
// differential FIRST LAST [gpu]: for each seed, operations drawn from it, with all that they can be
// asked for, in every kind of memory (gpu: on GPU 0 too), submitted in a random order; every
// element of every result is compared. Prints "all as planned" on each rank.
#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/system/programs/differential_call.h"

namespace differential {
namespace {

using Calls = std::vector<Call*>;

class Run {
 public:
  Run(uint64_t seed, bool on_gpu)
      : on_gpu_(on_gpu),
        plan_(seed * 2),
        own_((seed * 2 + 1) * 1000 + static_cast<uint64_t>(hvd::rank())) {}

  void Go() {
    MakeSets();
    for (int phase = 0; phase < kPhases; ++phase)
      RunPhase(static_cast<Phase>(plan_.Below(kPhaseKinds)));
    for (size_t i = 1; i < sets_.size(); ++i) Must(hvd_remove_process_set(sets_[i].id), "remove");
  }

 private:
  static constexpr int kPhases = 8;
  static constexpr int kMostCalls = 10;
  enum Phase { kBlocking, kAsync, kBoth, kTwoThreads, kJoin, kPhaseKinds };

  void MakeSets() {
    Set all;
    for (int rank = 0; rank < hvd::size(); ++rank) all.ranks.push_back(rank);
    sets_ = {all};
    for (int wanted = static_cast<int>(plan_.Below(4)); wanted > 0; --wanted) {
      Set some;
      for (const int rank : all.ranks) {
        if (plan_.OneIn(2)) some.ranks.push_back(rank);
      }
      if (some.ranks.empty()) some.ranks.push_back(plan_.Of(all.ranks));
      const std::vector<int32_t> ranks(some.ranks.begin(), some.ranks.end());
      const auto count = static_cast<int32_t>(ranks.size());
      const hvd_status_t made = hvd_add_process_set(ranks.data(), count, &some.id);
      if (made == HVD_ERR_DUPLICATE) continue;
      Must(made, "add a set");
      sets_.push_back(some);
    }
  }

  // Draws a phase's operations. In a join, each rank does as many of them as it has drawn, and
  // joins.
  std::vector<Operation> DrawPhase(Phase phase) {
    const auto count = static_cast<int>(1 + plan_.Below(kMostCalls));
    std::vector<int64_t> done_by(static_cast<size_t>(hvd::size()), count);
    for (int64_t& done : done_by) done = phase == kJoin ? plan_.Below(count + 1) : count;
    std::vector<Operation> operations;
    for (int i = 0; i < count; ++i) {
      const bool ordered = phase == kBlocking || phase == kAsync;
      Operation operation = Draw({drawn_++, phase == kJoin, ordered}, sets_, &plan_);
      operation.on_gpu = on_gpu_ && !plan_.OneIn(4);
      for (int member = 0; member < operation.set.size(); ++member) {
        operation.takes_part[member] = i < done_by[operation.set.ranks[member]];
      }
      operations.push_back(std::move(operation));
    }
    return operations;
  }

  void RunPhase(Phase phase) {
    const bool join_waits_first = plan_.OneIn(2);
    const std::vector<Operation> operations = DrawPhase(phase);
    std::vector<std::unique_ptr<Call>> calls;
    Calls all, even, odd;
    for (const Operation& operation : operations) {
      const int member = operation.set.IndexOf(hvd::rank());
      if (member < 0 || !operation.takes_part[member]) continue;
      calls.push_back(std::make_unique<Call>(operation, &own_));
      all.push_back(calls.back().get());
      (operation.number % 2 == 0 ? even : odd).push_back(all.back());
    }
    switch (phase) {
      case kBlocking:
        RunAll(all);
        break;
      case kAsync:
        SubmitAll(all);
        WaitForAll(all);
        break;
      case kBoth:
        SubmitAll(even);
        RunAll(odd);
        WaitForAll(even);
        break;
      case kTwoThreads:
        RunOnTwoThreads(even, odd);
        break;
      default:
        JoinBeside(all, join_waits_first);
    }
    for (const auto& call : calls) call->Finish();
  }

  void RunAll(const Calls& calls) {
    for (Call* call : calls) call->Run();
  }

  void RunOnTwoThreads(const Calls& mine, const Calls& others) {
    std::thread other([&] { RunAll(others); });
    RunAll(mine);
    other.join();
  }

  // In any order, but for the unnamed ones of a set.
  void SubmitAll(Calls calls) {
    std::shuffle(calls.begin(), calls.end(), own_.engine());
    const auto unnamed = [](const Call* call) { return call->operation().name.empty(); };
    Calls ordered;
    std::copy_if(calls.begin(), calls.end(), std::back_inserter(ordered), unnamed);
    std::sort(ordered.begin(), ordered.end(), [](const Call* a, const Call* b) {
      return a->operation().number < b->operation().number;
    });
    size_t next = 0;
    for (Call* call : calls) {
      Call* submitted = unnamed(call) ? ordered[next++] : call;
      submitted->Submit();
      if (own_.OneIn(4)) submitted->Poll();
    }
  }

  void WaitForAll(Calls calls) {
    std::shuffle(calls.begin(), calls.end(), own_.engine());
    for (Call* call : calls) call->Wait();
  }

  void JoinBeside(const Calls& calls, bool waits_first) {
    SubmitAll(calls);
    if (waits_first) WaitForAll(calls);
    Must(hvd_join(nullptr), "join");
    if (!waits_first) WaitForAll(calls);
  }

  const bool on_gpu_;
  Random plan_, own_;  // the same on all ranks; this rank's
  std::vector<Set> sets_;
  int drawn_ = 0;
};

}  // namespace
}  // namespace differential

int main(int argc, char** argv) try {
  const bool on_gpu = argc == 4 && std::strcmp(argv[3], "gpu") == 0;
  if (argc != 3 && !on_gpu) return 2;
  hvd::Session session;
  for (uint64_t seed = std::strtoull(argv[1], nullptr, 10);
       seed <= std::strtoull(argv[2], nullptr, 10); ++seed) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    differential::Run(seed, on_gpu).Go();
  }
  if (on_gpu) gpu::Side::Close();
  std::printf("all as planned\n");
  return 0;
} catch (const gpu::Problem& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
