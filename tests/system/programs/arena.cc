// SPDX-License-Identifier: Apache-2.0
// arena check: tensors in memory of hvd_alloc, on some ranks or on all, from session to session;
// prints "arena right" on each rank when every sum is. arena loop: reduces for ever, for tests that
// kill it. arena grow, scarce, unseen: what the arenas take of a rank's address space (arena_room).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "hvd/hvd.hpp"
#include "tests/system/programs/arena_moves.h"
#include "tests/system/programs/arena_room.h"

namespace {

constexpr size_t kCounts[] = {1, 17, 1000, 100003, 1 << 18};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s\n", hvd::rank(), what.c_str());
  std::exit(1);
}

// Small whole numbers: sums are exact in any order.
float Mine(int rank, size_t i, int turn) { return static_cast<float>((i + turn) % 13 + rank); }

float Summed(size_t i, int turn) {
  float sum = 0;
  for (int rank = 0; rank < hvd::size(); ++rank) sum += Mine(rank, i, turn);
  return sum;
}

void Sum(const float* input, float* output, size_t count, int turn, const std::string& name) {
  for (size_t i = 0; i < count; ++i) const_cast<float*>(input)[i] = Mine(hvd::rank(), i, turn);
  hvd::allreduce(input, output, count, hvd::Op::kSum, name);
  for (size_t i = 0; i < count; ++i) {
    if (output[i] != Summed(i, turn)) Fail(name + ": element " + std::to_string(i) + " is wrong");
  }
}

void CheckSums() {
  const int turn = hvd::rank() % 2;
  for (const size_t count : kCounts) {
    hvd::Buffer<float> input(count + 3), output(count);
    std::vector<float> own(count);
    const std::string name = "sum of " + std::to_string(count);
    for (int i = 0; i < 2; ++i) {
      Sum(input.data(), output.data(), count, i, name);
      Sum(input.data(), input.data(), count, i, name + " in place");
      Sum(input.data() + 3, input.data() + 3, count, i, name + " at an odd place");
      Sum(turn == 0 ? input.data() : own.data(), turn == 0 ? input.data() : own.data(), count, i,
          name + " of every other rank");
      Sum(input.data(), own.data(), count, i, name + " out of the arena");
      Sum(own.data(), output.data(), count, i, name + " into the arena");
    }
  }
}

// Every rank in an order of its own, two buckets at a time.
void CheckGradients() {
  std::vector<size_t> counts;
  for (size_t i = 0; i < 60; ++i) counts.push_back(i * i * 37 % 20011);
  hvd::GradientOptions options;
  options.chunk_bytes = 256 << 10;
  hvd::Gradients<float> first(counts, options);
  options.name = "second";
  options.op = hvd::Op::kSum;
  hvd::Gradients<float> second(counts, options);
  std::vector<size_t> order(counts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(static_cast<unsigned>(hvd::rank()));
  for (int step = 0; step < 5; ++step) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      for (size_t k = 0; k < counts[i]; ++k) {
        first[i][k] = second[i][k] = Mine(hvd::rank(), i + k, step);
      }
      second.ready(i);
      first.ready(i);
    }
    first.wait();
    second.wait();
    for (size_t i = 0; i < counts.size(); ++i) {
      for (size_t k = 0; k < counts[i]; ++k) {
        const float sum = Summed(i + k, step);
        if (second[i][k] != sum || first[i][k] != sum / static_cast<float>(hvd::size())) {
          Fail("gradient " + std::to_string(i) + " is wrong in step " + std::to_string(step));
        }
      }
    }
  }
}

// A data loader's process writes where its parent's tensors are.
void CheckFork(hvd::Buffer<float>* kept) {
  std::fill(kept->begin(), kept->end(), 1.0f);
  const pid_t child = fork();
  if (child == 0) {
    std::memset(kept->data(), 0x55, kept->size() * sizeof(float));
    _exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) Fail("the forked child failed");
  hvd::allreduce(kept->data(), kept->size(), hvd::Op::kSum, "after fork");
  for (const float value : *kept) {
    if (value != static_cast<float>(hvd::size())) Fail("a forked child's writing came through");
  }
}

int Check() {
  hvd::Buffer<float> kept(300000);  // before any session
  for (int session = 0; session < 2; ++session) {
    const hvd::Session joined;
    Sum(kept.data(), kept.data(), kept.size(), session, "kept");
    CheckSums();
    CheckGradients();
    CheckMoves();
    CheckFork(&kept);
    if (session == 1) std::printf("rank %d: arena right\n", hvd::rank());
  }
  return 0;
}

int Loop() {
  const hvd::Session session;
  hvd::Buffer<float> data(4 << 20);
  hvd::allreduce(data.data(), data.size(), hvd::Op::kSum, "data");
  std::printf("joined\n");
  std::fflush(stdout);
  for (;;) hvd::allreduce(data.data(), data.size(), hvd::Op::kSum, "data");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "check") return Check();
    if (mode == "loop") return Loop();
    if (mode == "grow") return GrowRoom();
    if (mode == "scarce") return ScarceRoom();
    if (mode == "unseen") return UnseenRoom();
    std::fprintf(stderr, "arena: which mode?\n");
    return 2;
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "arena: rank %d: %s\n", hvd::rank(), error.what());
    return 1;
  }
}
