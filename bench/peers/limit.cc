// SPDX-License-Identifier: Apache-2.0
// Measures how fast the machine's memory lets an allreduce be, with next to nothing around it.
// shared: all buffers lie in memory that every rank maps, each rank sums its own slice of all of
// them and writes the sum into all; nothing is copied. Only hvd_alloc's buffers lie so. private: no
// rank sees another's buffer, so each copies what the others sum to where they see it, sums its own
// slice out of everyone's and into everyone's, and copies the others' slices back. (Of copying all
// and summing all, of a result beside the input, of pieces of 16 KB to 256 KB and of places by
// turns, none was faster, from 64 KB to 4 MB.) Usage: limit NP SIZES [private]
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "bench/peers/timing.h"

namespace {

constexpr int kMaxRanks = 64;

struct Shared {
  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<int> round{0};
  alignas(64) double times[kMaxRanks] = {};
};

void* MapShared(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return memory;
}

void Barrier(Shared* shared, int size) {
  const int round = shared->round.load(std::memory_order_relaxed);
  if (shared->arrived.fetch_add(1, std::memory_order_acq_rel) == size - 1) {
    shared->arrived.store(0, std::memory_order_relaxed);
    shared->round.store(round + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; shared->round.load(std::memory_order_acquire) == round; ++spins) {
    if (spins > 20000) sched_yield();
  }
}

void SumSlice(const std::vector<float*>& buffers, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    float sum = buffers[0][i];
    for (size_t r = 1; r < buffers.size(); ++r) sum += buffers[r][i];
    for (float* buffer : buffers) buffer[i] = sum;
  }
}

// The case of two ranks in a form that compilers turn into vectors.
void SumSliceOfTwo(float* __restrict a, float* __restrict b, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) a[i] = b[i] = a[i] + b[i];
}

void Sum(const std::vector<float*>& buffers, size_t begin, size_t end) {
  buffers.size() == 2 ? SumSliceOfTwo(buffers[0], buffers[1], begin, end)
                      : SumSlice(buffers, begin, end);
}

// Copies all but [begin, end) of `count` elements.
void CopyAround(float* to, const float* from, size_t begin, size_t end, size_t count) {
  std::memcpy(to, from, begin * sizeof(float));
  std::memcpy(to + end, from + end, (count - end) * sizeof(float));
}

void PinTo(int rank) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(rank % static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

}  // namespace

int main(int argc, char** argv) {
  peers::Peer peer;
  const bool is_private = argc > 3 && std::strcmp(argv[3], "private") == 0;
  peer.name = is_private ? "limit of private memory" : "limit";
  peer.size = std::atoi(argv[1]);
  if (peer.size < 1 || peer.size > kMaxRanks) return 2;
  const std::vector<size_t> sizes = peers::ParseSizes(argv[2]);
  auto* const shared = new (MapShared(sizeof(Shared))) Shared;
  std::vector<float*> buffers;
  const size_t most = *std::max_element(sizes.begin(), sizes.end()) + 64;
  for (int r = 0; r < peer.size; ++r) buffers.push_back(static_cast<float*>(MapShared(most)));
  for (int r = 1; r < peer.size && peer.rank == 0; ++r) {
    if (fork() == 0) peer.rank = r;
  }
  PinTo(peer.rank);

  peer.barrier = [&] { Barrier(shared, peer.size); };
  // Like the shared ones at the begin of a cache line, and not at that of a page: see CopyBytes.
  auto* const own = static_cast<float*>(std::aligned_alloc(64, (most + 63) / 64 * 64));
  const auto sum = [&](float* data, size_t count) {
    const size_t begin = count * peer.rank / peer.size, end = count * (peer.rank + 1) / peer.size;
    std::vector<float*> seen = buffers;  // where this rank sees everyone's
    seen[peer.rank] = data;
    if (is_private) CopyAround(buffers[peer.rank], data, begin, end, count);
    Barrier(shared, peer.size);
    Sum(seen, begin, end);
    Barrier(shared, peer.size);
    if (is_private) CopyAround(data, buffers[peer.rank], begin, end, count);
  };
  peers::SumInPlace(
      &peer, [&](size_t) { return is_private ? own : buffers[peer.rank]; }, sum);
  peer.max = [&](double mine) {
    shared->times[peer.rank] = mine;
    Barrier(shared, peer.size);
    const double worst = *std::max_element(shared->times, shared->times + peer.size);
    Barrier(shared, peer.size);
    return worst;
  };
  peers::Measure(peer, sizes);
  if (peer.rank != 0) _exit(0);
  while (wait(nullptr) > 0) {
  }
}
