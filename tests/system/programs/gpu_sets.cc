// SPDX-License-Identifier: Apache-2.0
// gpu_sets MODE: GPU tensors of several process sets, on three ranks. Modes: "crossed" (every rank
// submits to its sets in another order), "late" (a set that is made when NCCL is at work already),
// "loop" (of two sets, until it is ended from outside; prints "looping").
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "tests/system/programs/gpu_tensor.h"

namespace {

using gpu::Submit;
using gpu::Tensor;

struct Set {
  int32_t id;
  float ranks;  // how many
};

// This rank's, all of two, and the global one.
std::vector<Set> MakeSets() {
  std::vector<Set> mine = {{HVD_GLOBAL_PROCESS_SET, static_cast<float>(hvd::size())}};
  for (const auto& [a, b] : std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {0, 2}}) {
    const int32_t ranks[] = {a, b};
    int32_t id = 0;
    Must(hvd_add_process_set(ranks, 2, &id), "add a set");
    if (hvd::rank() == a || hvd::rank() == b) mine.push_back({id, 2});
  }
  return mine;
}

hvd_options_t SumIn(const Set& set, const char* name) {
  hvd_options_t options = gpu::Sum(name);
  options.process_set = set.id;
  return options;
}

// Launched as they come, they would wait for one another in a circle.
void CheckCrossed() {
  const std::vector<Set> sets = MakeSets();
  std::deque<Tensor> tensors;  // which do not move
  for (size_t i = 0; i < sets.size(); ++i) tensors.emplace_back(5000, i);
  for (size_t round = 0; round < 30; ++round) {
    std::vector<hvd_handle_t> handles(sets.size());
    for (Tensor& tensor : tensors) tensor.Set(1);
    for (size_t turn = 0; turn < sets.size(); ++turn) {
      const size_t at = (turn + round + static_cast<size_t>(hvd::rank())) % sets.size();
      handles[at] = Submit(tensors[at], SumIn(sets[at], "x"));
    }
    for (size_t at = 0; at < sets.size(); ++at) {
      Must(hvd_wait(handles[at]), "wait");
      tensors[at].MustBe(sets[at].ranks, "of set " + std::to_string(sets[at].id));
    }
  }
}

void CheckLate() {
  Tensor x(100);
  x.Set(1);
  const Set all = {HVD_GLOBAL_PROCESS_SET, static_cast<float>(hvd::size())};
  Must(hvd_wait(Submit(x, SumIn(all, "x"))), "wait");
  x.MustBe(all.ranks, "before there are sets");
  for (const Set& set : MakeSets()) {
    x.Set(1);
    const bool refused = hvd_wait(Submit(x, SumIn(set, "x"))) != HVD_OK;
    if (refused) std::printf("refused: %s\n", hvd_last_error());
    x.MustBe(refused ? 1 : set.ranks, "of a late set");
  }
}

// A death must end it before hvdrun's stop does.
void Loop() {
  std::signal(SIGTERM, SIG_IGN);
  const std::vector<Set> sets = MakeSets();
  Tensor x(100000);
  for (int i = 0;; ++i) {
    for (const Set& set : sets) {
      x.Set(1);
      const hvd_options_t options = SumIn(set, "loop");
      if (hvd_allreduce(&x.value, &x.value, &options) == HVD_OK) continue;
      std::fprintf(stderr, "loop: %s\n", hvd_last_error());
      std::_Exit(1);  // hvd still has the GPU
    }
    if (i == 5) {
      std::printf("looping\n");
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const gpu::Modes modes = {{"crossed", CheckCrossed}, {"late", CheckLate}, {"loop", Loop}};
  return gpu::RunMode(modes, argc == 2 ? argv[1] : "");
}
