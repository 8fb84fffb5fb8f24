// SPDX-License-Identifier: Apache-2.0
// fuzz FIRST LAST [ROUNDS [tell]]: for each seed rounds of calls that are drawn from it: all
// operations, all types, groups, sends, process sets, joins, barriers, threads, ranks that ask for
// something else, empty tensors without an address. Each call must end as the plan says, with
// results that are computed here one element at a time. Prints "no fault" on each rank.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "tests/system/programs/fuzz_call.h"

namespace fuzz {
namespace {

void Must(hvd_status_t status, const char* what) {
  if (status != HVD_OK) Fail(std::string(what) + ": " + hvd_last_error());
}

using Calls = std::vector<Call*>;

class Session {
 public:
  Session(uint64_t seed, int rounds)
      : rounds_(rounds),
        plan_(seed * 7919),
        own_(seed * 104729 + static_cast<uint64_t>(hvd_rank()) + 1) {}

  void Go() {
    MakeSets();
    for (int round = 0; round < rounds_; ++round) {
      const Round drawn = DrawRound(sets_, hvd_size(), next_index_, &plan_);
      next_index_ += static_cast<int>(drawn.operations.size());
      Play(drawn);
    }
    for (size_t i = 1; i < sets_.size(); ++i) {
      const bool mine = sets_[i].IndexOf(hvd_rank()) >= 0;
      if (mine || made_by_all_[i]) Must(hvd_remove_process_set(sets_[i].id), "remove a set");
    }
  }

 private:
  // Some by all ranks, some by their members alone.
  void MakeSets() {
    Set all;
    for (int rank = 0; rank < hvd_size(); ++rank) all.ranks.push_back(rank);
    sets_ = {all};
    made_by_all_ = {true};
    for (int wanted = plan_.Below(4); wanted > 0; --wanted) {
      Set some;
      for (const int rank : all.ranks) {
        if (plan_.OneIn(2)) some.ranks.push_back(rank);
      }
      if (some.ranks.empty()) some.ranks.push_back(plan_.Of(all.ranks));
      MakeSet(some, plan_.OneIn(2), wanted);
    }
  }

  void MakeSet(Set some, bool by_all, int key) {
    const std::vector<int32_t> ranks(some.ranks.begin(), some.ranks.end());
    const auto count = static_cast<int32_t>(ranks.size());
    if (by_all) {
      const hvd_status_t made = hvd_add_process_set(ranks.data(), count, &some.id);
      if (made == HVD_ERR_DUPLICATE) return;
      Must(made, "add a set");
    } else if (some.IndexOf(hvd_rank()) >= 0) {
      Must(hvd_add_process_set_members(ranks.data(), count, std::to_string(key).c_str(), &some.id),
           "add a set by its members");
    }
    sets_.push_back(some);
    made_by_all_.push_back(by_all);
  }

  void Play(const Round& round) {
    std::vector<std::unique_ptr<Call>> calls;
    std::map<int, Call*> mine;
    for (const Operation& operation : round.operations) {
      const int member = operation.set.IndexOf(hvd_rank());
      if (member < 0 || !operation.Concerns(member) ||
          !operation.takes_part[static_cast<size_t>(member)])
        continue;
      calls.push_back(std::make_unique<Call>(operation, member, &own_));
      mine[operation.index] = calls.back().get();
    }
    Calls order = InOwnOrder(round, mine);
    if (round.two_threads) {
      PlayByTwo(order);
    } else {
      for (Call* call : order) call->Begin();
    }
    int32_t last = -1;
    const bool joins_first = round.joins && own_.OneIn(2);
    if (joins_first) Must(hvd_join(&last), "join");
    Shuffle(&order);
    for (Call* call : order) call->End();
    if (round.joins && !joins_first) Must(hvd_join(&last), "join");
    Must(hvd_barrier(nullptr), "the barrier behind a round");
  }

  // Calls that block, and those whose place tells them from others, stay in the plan's order. A
  // call that has a name and does not block may come anywhere; but where somebody waits for all
  // that he has submitted, or joins, it moves only between two calls that block, on all ranks
  // alike: else two ranks could wait for what the other has behind the call in which it waits.
  Calls InOwnOrder(const Round& round, const std::map<int, Call*>& mine) {
    const bool late = std::count(round.late.begin(), round.late.end(), hvd_rank()) != 0;
    Calls order, segment, held;
    const auto close = [&] {
      MixFree(&segment);
      order.insert(order.end(), segment.begin(), segment.end());
      segment.clear();
    };
    for (const Operation& operation : round.operations) {
      const auto found = mine.find(operation.index);
      if (operation.blocking && round.IsStrict()) close();
      if (found != mine.end())
        (late && operation.late_for_some ? held : segment).push_back(found->second);
      if (!operation.IsBlockingBarrier()) continue;
      close();
      segment.swap(held);
    }
    segment.insert(segment.end(), held.begin(), held.end());
    close();
    return order;
  }

  static bool IsFree(const Call* call) {
    return !call->operation().blocking && !call->operation().IsOrdered();
  }

  void MixFree(Calls* calls) {
    for (size_t i = 0; i < calls->size(); ++i) {
      const auto other = static_cast<size_t>(own_.Below(static_cast<int>(calls->size())));
      // One that is free moves to any place; the others keep their order.
      if (!IsFree((*calls)[i])) continue;
      Call* const moved = (*calls)[i];
      calls->erase(calls->begin() + static_cast<std::ptrdiff_t>(i));
      calls->insert(calls->begin() + static_cast<std::ptrdiff_t>(other), moved);
    }
  }

  void Shuffle(Calls* calls) {
    for (size_t i = calls->size(); i > 1; --i) {
      std::swap((*calls)[i - 1], (*calls)[static_cast<size_t>(own_.Below(static_cast<int>(i)))]);
    }
  }

  // Calls that are free may come from a second thread beside the first's.
  void PlayByTwo(const Calls& order) {
    Calls first, second;
    for (Call* call : order) (IsFree(call) && own_.OneIn(2) ? second : first).push_back(call);
    std::thread other([&second] {
      for (Call* call : second) call->Begin();
    });
    for (Call* call : first) call->Begin();
    other.join();
  }

  const int rounds_;
  Random plan_, own_;
  std::vector<Set> sets_;
  std::vector<bool> made_by_all_;
  int next_index_ = 0;
};

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: fuzz FIRST LAST [ROUNDS [tell]]\n");
    return 2;
  }
  Must(hvd_init(nullptr), "init");
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 8;
  Call::tells = argc > 4;
  for (int seed = std::atoi(argv[1]); seed <= std::atoi(argv[2]); ++seed) {
    std::fprintf(stderr, "seed %d\n", seed);
    Session(static_cast<uint64_t>(seed), rounds).Go();
  }
  Must(hvd_shutdown(), "shutdown");
  std::printf("no fault\n");
  return 0;
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) { return fuzz::Main(argc, argv); }
