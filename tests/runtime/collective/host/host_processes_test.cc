// SPDX-License-Identifier: Apache-2.0
// The host's collectives between real processes: private memory, sleeping by futex.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/runtime/collective/host/rank_processes.h"
#include "tests/runtime/collective/host_world.h"

namespace hvd::rt::test {
namespace {

// Exit codes of a rank: 0 all right, 1 no group, 2 wrong sum, 3 wrong gather.
int RunRank(const HostMemory& memory, int rank, int size, const HostThresholds& thresholds) {
  Waiter waiter(memory.page(), rank, nullptr, WaitPolicy::For(size, UsableCores()));
  auto host = HostCollectives::Create({&waiter, memory.region(), rank, size}, thresholds);
  if (!host.ok()) return 1;
  for (const size_t count : {1, 2000, 30000, 700001}) {
    std::vector<int32_t> data(count);
    std::iota(data.begin(), data.end(), rank);
    if (!(*host)->Allreduce({data.data(), data.data(), count, HVD_INT32, HVD_SUM}).ok()) return 2;
    for (size_t i = 0; i < count; ++i) {
      if (data[i] != static_cast<int32_t>(i * size + size * (size - 1) / 2)) return 2;
    }
    std::vector<int32_t> all(count * size);
    std::vector<int32_t> mine(count, rank);
    const std::vector<size_t> bytes(size, count * 4);
    if (!(*host)->Allgather({mine.data(), all.data(), bytes}).ok()) return 3;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] != static_cast<int32_t>(i / count)) return 3;
    }
  }
  return 0;
}

TEST_CASE("ranks as processes, in one shot and by stages") {
  HostThresholds stages;
  stages.one_shot_bytes = 0;
  for (const HostThresholds& thresholds : {HostThresholds{}, stages}) {
    for (const int size : {2, 5}) {
      const HostMemory memory(size, false);
      RunProcesses(size, [&](int rank) { return RunRank(memory, rank, size, thresholds); });
    }
  }
}

}  // namespace
}  // namespace hvd::rt::test
