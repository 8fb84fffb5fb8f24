// SPDX-License-Identifier: Apache-2.0
// endless KIND: does one kind of collective for ever, so that whoever is stopped or killed is
// inside it, or between two of them. Says "joined" after the first.
//   tiny      8 bytes, marked directly
//   staged    64 MB of private memory
//   arena     16 MB that all ranks of a host see
//   fused     24 tensors of 64 KB, submitted together and waited for together
//   small     64 KB of private memory
//   gather    1 MB a rank, allgathered
//   set       64 KB, in a process set of all ranks
//   sends     16 MB from each rank to the next
//   join      nothing: after one sum rank 1 stops itself (SIGSTOP), and the others join
//   shutdown  the same, and the others shut down
// endless KIND stays: the same, deaf to SIGTERM, so that it says what hvd tells it.
// endless alone: rank 0 waits for ever in an allreduce "alone"; the others sleep.
// endless failing SETTING VALUE [CODE]: rank 1 calls hvd_init with the setting, which must fail,
// and exits with CODE; without a CODE it goes on. The others wait for it.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

void RunForever(const std::function<void()>& step) {
  for (uint64_t steps = 0;; ++steps) {
    step();
    if (steps == 0) std::printf("joined rank %d\n", hvd::rank());
    if (steps == 0) std::fflush(stdout);
  }
}

void Sum(float* data, size_t count, int32_t set = HVD_GLOBAL_PROCESS_SET) {
  hvd::Options options;
  options.name = "endless";
  options.process_set = set;
  hvd::allreduce(data, count, options);
}

void Tiny() {
  float two[2] = {1, 2};
  RunForever([&] { Sum(two, 2); });
}

void Private(size_t count) {
  std::vector<float> data(count, 1);
  RunForever([&] { Sum(data.data(), count); });
}

void Arena() {
  hvd::Buffer<float> data(4 << 20);
  RunForever([&] { Sum(data.data(), data.size()); });
}

void Fused() {
  std::vector<std::vector<float>> tensors(24, std::vector<float>(16 << 10, 1));
  RunForever([&] {
    std::vector<hvd::Handle> handles;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string name = "endless." + std::to_string(i);
      handles.push_back(hvd::allreduce_async(tensors[i], hvd::Op::kAverage, name));
    }
    for (hvd::Handle& handle : handles) handle.wait();
  });
}

void Gather() {
  const std::vector<float> mine(256 << 10, 1);
  RunForever([&] { hvd::allgather(mine.data(), mine.size(), 1, "endless"); });
}

void InSet() {
  std::vector<int32_t> ranks;
  for (int rank = 0; rank < hvd::size(); ++rank) ranks.push_back(rank);
  ranks.pop_back();  // all but the last, which waits for them
  const int32_t set = hvd::add_process_set(ranks);
  std::vector<float> data(16 << 10, 1);
  if (hvd::rank() + 1 == hvd::size()) Sum(data.data(), 1);
  RunForever([&] { Sum(data.data(), data.size(), set); });
}

void Sends() {
  const std::vector<float> mine(4 << 20, 1);
  std::vector<float> theirs(mine.size());
  const int size = hvd::size(), rank = hvd::rank();
  RunForever([&] {
    hvd::Handle sent = hvd::send_async(mine.data(), mine.size(), (rank + 1) % size);
    hvd::Handle came = hvd::recv_async(theirs.data(), theirs.size(), (rank + size - 1) % size);
    sent.wait();
    came.wait();
  });
}

void Alone() {
  float one = 1;
  hvd::allreduce(&one, 1, hvd::Op::kSum, "together");
  std::printf("joined rank %d\n", hvd::rank());
  std::fflush(stdout);
  if (hvd::rank() == 0) hvd::allreduce(&one, 1, hvd::Op::kSum, "alone");
  while (true) pause();
}

int Fail(int argc, char** argv) {
  const bool fails = std::strcmp(std::getenv("HVD_RANK"), "1") == 0;
  if (fails) setenv(argv[2], argv[3], 1);
  try {
    hvd::init();
  } catch (const hvd::Error&) {
    if (!fails) throw;
    if (argc > 4) return std::atoi(argv[4]);
    while (true) pause();
  }
  if (fails) return 0;
  Tiny();
  return 0;
}

}  // namespace

// Whoever comes to an end waits for rank 1, which comes to none.
void End(const std::function<void()>& end) {
  float two[2] = {1, 2};
  Sum(two, 2);
  std::printf("joined rank %d\n", hvd::rank());
  std::fflush(stdout);
  if (hvd::rank() == 1) std::raise(SIGSTOP);
  end();
}

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> kinds = {
      {"tiny", Tiny},
      {"staged", [] { Private(16 << 20); }},
      {"small", [] { Private(16 << 10); }},
      {"arena", Arena},
      {"fused", Fused},
      {"gather", Gather},
      {"set", InSet},
      {"sends", Sends},
      {"join", [] { End(hvd::join); }},
      {"shutdown", [] { End(hvd::shutdown); }},
      {"alone", Alone}};
  const std::string kind = argc > 1 ? argv[1] : "";
  try {
    if (kind == "failing" && argc > 3) return Fail(argc, argv);
    if (kinds.count(kind) == 0) {
      std::fprintf(stderr, "endless: which kind?\n");
      return 2;
    }
    if (argc > 2 && std::strcmp(argv[2], "stays") == 0) std::signal(SIGTERM, SIG_IGN);
    hvd::init();
    kinds.at(kind)();
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "endless: rank %s: %s\n", std::getenv("HVD_RANK"), error.what());
    return 1;
  }
  return 0;
}
