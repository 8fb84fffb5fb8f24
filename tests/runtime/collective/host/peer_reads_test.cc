// SPDX-License-Identifier: Apache-2.0
// Reading other processes' memory: real processes, and a system that refuses.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <numeric>

#include "runtime/collective/host/peer_memory.h"
#include "runtime/collective/host/peer_reads.h"
#include "tests/runtime/collective/host/rank_processes.h"
#include "tests/runtime/collective/host_world.h"

namespace hvd::rt::test {
namespace {

// Refuses peer reads to this process and all that it starts, as a container's filter does.
bool RefusePeerReads() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Sums of several sizes, one after the other, each in place and not. 0: all right.
int CheckSums(const HostMemory& memory, int rank, int size, const PeerReadOptions& options) {
  HostThresholds thresholds;
  thresholds.one_shot_bytes = 0;
  thresholds.peer_reads = options;
  Waiter waiter(memory.page(), rank, nullptr, WaitPolicy::For(size, UsableCores()));
  auto host = HostCollectives::Create({&waiter, memory.region(), rank, size}, thresholds);
  if (!host.ok()) return 1;
  for (const size_t count : {30000, 700001, 2000, 700001, 300000}) {
    // Elsewhere on each rank: an address is of its own process only.
    std::vector<int32_t> room(count + rank * 5000), other(count);
    int32_t* data = room.data() + rank * 5000;
    for (int32_t* output : {other.data(), data}) {
      std::iota(data, data + count, rank);
      if (!(*host)->Allreduce({data, output, count, HVD_INT32, HVD_SUM}).ok()) return 2;
      for (size_t i = 0; i < count; ++i) {
        if (output[i] != static_cast<int32_t>(i * size + size * (size - 1) / 2)) return 3;
      }
    }
  }
  return 0;
}

TEST_CASE("peer reads: between processes, always and by trial") {
  for (const PeerReadOptions& options : {PeerReadOptions{1, true}, PeerReadOptions{1, false}}) {
    for (const int size : {2, 5}) {
      const HostMemory memory(size, false);
      RunProcesses(size, [&](int rank) { return CheckSums(memory, rank, size, options); });
    }
  }
}

TEST_CASE("peer reads: where one rank's system refuses, all stage") {
  const HostMemory memory(3, false);
  RunProcesses(3, [&](int rank) {
    if (rank == 1 && !RefusePeerReads()) return 10;
    uint64_t token = 7;
    const MemoryOffer own = OfferMemory(&token, &token, &token);
    if (CanRead(own, sizeof(token)) != (rank != 1)) return 11;
    return CheckSums(memory, rank, 3, {1, true});
  });
}

TEST_CASE("peer reads: another process under the same number is not taken for the peer") {
  uint64_t token = 0x1234567890abcdef;
  MemoryOffer offer = OfferMemory(&token, &token, &token);
  CHECK(CanRead(offer, sizeof(token)));
  offer.token ^= 1;
  CHECK_FALSE(CanRead(offer, sizeof(token)));
}

TEST_CASE("peer reads: memory that is not there") {
  uint64_t token = 1;
  char bytes[8] = {};
  MemoryOffer offer = OfferMemory(bytes, bytes, &token);
  offer.output = nullptr;
  CHECK_FALSE(CanRead(offer, sizeof(bytes)));
  std::byte to[8];
  const absl::Status read = ReadMemory(getpid(), nullptr, to, sizeof(to));
  CHECK(absl::IsUnavailable(read));
  CHECK(std::string(read.message()).find("Bad address") != std::string::npos);
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  REQUIRE(waitpid(gone, nullptr, 0) == gone);
  CHECK(std::string(ReadMemory(gone, nullptr, to, sizeof(to)).message()).find("No such process") !=
        std::string::npos);
}

TEST_CASE("peer reads: a tensor that went away ends the epoch, with the reason") {
  const HostMemory memory(2, false);
  const std::string complaint = RunRanks(2, [&](int rank) -> std::string {
    Waiter waiter(memory.page(), rank, nullptr, WaitPolicy::For(2, UsableCores()));
    const auto group = HostGroup::Create({&waiter, memory.region(), rank, 2});
    if (!group.ok()) return group.status().ToString();
    std::vector<int32_t> data(1000, 1);
    const ReduceArgs args = {data.data(), data.data(), data.size(), HVD_INT32, HVD_SUM};
    const TensorView tensors(args);
    const std::vector<size_t> bounds = {0, 512, 1000};
    HostReduce reduce{.kernel = FindReduceKernel(HVD_INT32, HVD_SUM, BestKernelLevel()),
                      .scales = {},
                      .tensors = tensors,
                      .bounds = bounds};
    uint64_t token = 1;
    std::vector<MemoryOffer> offers(2, OfferMemory(data.data(), data.data(), &token));
    offers[1 - rank].input = nullptr;
    const absl::Status status = PeerReadReduce(**group, reduce, offers);
    if (!absl::IsAborted(status)) return "not aborted: " + status.ToString();
    for (const char* words : {"Bad address", "freed while it was reduced", "HVD_PEER_READ_BYTES"}) {
      if (status.message().find(words) == absl::string_view::npos) return status.ToString();
    }
    return "";
  });
  CHECK(complaint == "");
}

}  // namespace
}  // namespace hvd::rt::test
