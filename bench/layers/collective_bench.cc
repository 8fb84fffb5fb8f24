// SPDX-License-Identifier: Apache-2.0
// Times the collectives of one host alone, without engine or launcher: a JSON line a size and way.
// Ranks are forked and pinned; the whole buffer is rewritten before each call. The ways of an
// allreduce take turns, some calls each, so that all see the machine in the same state: "limit" is
// the plain loop over buffers that all map, "arena" the same buffers by HostCollectives, "user"
// private memory.
// Usage: collective_bench [np] [allreduce|reducescatter|allgather|alltoall|broadcast]
// SIZES="4 1024 .." TURNS=n; ONE_SHOT=, PIECE=, STREAM= (bytes) set the thresholds; DTYPE=float16,
// bfloat16 and AVERAGE=1 are an allreduce's
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/collective/host/host_collectives.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/slices.h"

namespace {

struct Shared {
  hvd::HostPage page;
  alignas(64) double worst[hvd::kMaxLocalRanks];
};

double NowUs() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

size_t Number(const char* name, size_t otherwise) {
  const char* text = getenv(name);
  return text == nullptr ? otherwise : strtoull(text, nullptr, 10);
}

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  const char* text = getenv("SIZES");
  std::istringstream words(text != nullptr ? text
                                           : "4 1024 4096 16384 65536 262144 1048576 4194304 "
                                             "16777216 67108864");
  for (size_t size; words >> size;) sizes.push_back(size);
  return sizes;
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(3);
}

struct Rank {
  hvd::rt::HostCollectives& host;
  Shared* shared;
  std::vector<void*> arena;  // every rank's
  hvd_dtype_t dtype;
  hvd_op_t reduction;
  const std::string op;
};

// Calls of one way at one size; the time is the slowest rank's.
struct Way {
  std::string name;
  std::byte* buffer;
  std::function<void()> call;
  std::vector<double> us;
};

void RunTurn(Rank& rank, Way& way, size_t bytes, int calls) {
  for (int i = -2; i < calls; ++i) {
    std::fill_n(reinterpret_cast<float*>(way.buffer), (bytes + 3) / 4, rank.host.rank() + 1.0f);
    Check(rank.host.Barrier());
    const double start = NowUs();
    way.call();
    rank.shared->worst[rank.host.rank()] = NowUs() - start;
    Check(rank.host.Barrier());
    const double* worst = rank.shared->worst;
    if (i >= 0) way.us.push_back(*std::max_element(worst, worst + rank.host.size()));
    Check(rank.host.Barrier());
  }
}

void Report(const Rank& rank, size_t bytes, std::vector<Way>& ways) {
  double first = 0;
  for (Way& way : ways) {
    std::sort(way.us.begin(), way.us.end());
    const double p50 = way.us[way.us.size() / 2];
    if (first == 0) first = p50;
    printf(
        "{\"peer\":\"%s\",\"op\":\"%s\",\"np\":%d,\"bytes\":%zu,\"us_p50\":%.2f,\"us_p10\":%.2f,"
        "\"of_%s\":%.2f}\n",
        way.name.c_str(), rank.op.c_str(), rank.host.size(), bytes, p50, way.us[way.us.size() / 10],
        ways[0].name.c_str(), first / p50);
  }
  fflush(stdout);
}

typedef float Vector __attribute__((vector_size(64)));

// Does as much as the memory allows: each sums its slice of all buffers into all, between two
// barriers.
void Limit(Rank& rank, size_t count) {
  Check(rank.host.Barrier());
  const std::vector<size_t> bounds = hvd::rt::EvenSlices(count, rank.host.size());
  const size_t begin = bounds[rank.host.rank()];
  const size_t end = bounds[rank.host.rank() + 1];
  const int size = rank.host.size();
  auto** buffers = reinterpret_cast<float**>(rank.arena.data());
  for (size_t i = begin; i < end; i += 16) {
    Vector sum;
    memcpy(&sum, buffers[0] + i, sizeof(sum));
    for (int r = 1; r < size; ++r) {
      Vector addend;
      memcpy(&addend, buffers[r] + i, sizeof(addend));
      sum += addend;
    }
    for (int r = 0; r < size; ++r) memcpy(buffers[r] + i, &sum, sizeof(sum));
  }
  Check(rank.host.Barrier());
}

std::vector<Way> AllreduceWays(Rank& rank, size_t bytes, std::vector<std::byte>& memory) {
  const size_t width = hvd::rt::DtypeBytes(rank.dtype);
  const size_t count = std::max<size_t>(1, bytes / width);
  auto* own = static_cast<std::byte*>(rank.arena[rank.host.rank()]);
  std::vector<Way> ways;
  if (rank.dtype == HVD_FLOAT32)
    ways.push_back({"limit", own, [&rank, count] { Limit(rank, count); }, {}});
  ways.push_back({"arena",
                  own,
                  [&rank, count, own] {
                    hvd::rt::ReducePart part{own, own, count, {}, {}};
                    const std::vector<const void*> inputs(rank.arena.begin(), rank.arena.end());
                    part.host_inputs = inputs;
                    part.host_outputs = rank.arena;
                    hvd::rt::ReduceArgs args;
                    args.dtype = rank.dtype;
                    args.op = rank.reduction;
                    args.parts = {&part, 1};
                    Check(rank.host.Allreduce(args));
                  },
                  {}});
  ways.push_back({"user",
                  memory.data(),
                  [&rank, count, data = memory.data()] {
                    Check(rank.host.Allreduce({data, data, count, rank.dtype, rank.reduction}));
                  },
                  {}});
  return ways;
}

// `bytes` as MPI's benchmarks count: of a rank's part.
std::vector<Way> OtherWays(Rank& rank, size_t bytes, std::vector<std::byte>& memory) {
  const int size = rank.host.size();
  std::byte* one = memory.data();
  std::byte* all = memory.data() + (bytes + 63) / 64 * 64;
  const std::vector<size_t> parts(size, bytes);
  if (rank.op == "allgather") {
    return {{"user", one, [=, &rank] { Check(rank.host.Allgather({one, all, parts})); }, {}}};
  }
  if (rank.op == "broadcast") {
    return {{"user", one, [=, &rank] { Check(rank.host.Broadcast({one, one, bytes, 0})); }, {}}};
  }
  const std::vector<size_t> cut(size, bytes / size / 4 * 4);
  if (rank.op == "alltoall") {
    return {{"user", one, [=, &rank] { Check(rank.host.Alltoall({one, all, cut, cut})); }, {}}};
  }
  const std::vector<size_t> counts(size, bytes / size / 4);
  return {{"user",
           one,
           [=, &rank] {
             Check(rank.host.ReduceScatter({one, all, counts, HVD_FLOAT32}));
           },
           {}}};
}

void BenchSize(Rank& rank, size_t bytes) {
  const size_t copies = rank.op == "allreduce" ? 1 : rank.host.size() + 1;
  std::vector<std::byte> memory(copies * (bytes + 64));
  std::vector<Way> ways =
      rank.op == "allreduce" ? AllreduceWays(rank, bytes, memory) : OtherWays(rank, bytes, memory);
  const int calls = bytes <= (1 << 18) ? 50 : bytes <= (8 << 20) ? 10 : 4;
  const size_t turns = Number("TURNS", bytes <= (8 << 20) ? 10 : 4);
  for (size_t turn = 0; turn < turns; ++turn) {
    for (Way& way : ways) RunTurn(rank, way, bytes, calls);
  }
  if (rank.host.rank() == 0) Report(rank, bytes, ways);
}

int RunRank(Shared* shared, void* region, const std::vector<void*>& arena, int rank,
            std::string op) {
  const int np = static_cast<int>(shared->page.local_size);
  const int cores = hvd::rt::UsableCores();
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(rank % cores, &mine);
  if (np <= cores) sched_setaffinity(0, sizeof(mine), &mine);
  hvd::rt::Waiter waiter(&shared->page, rank, nullptr, hvd::rt::WaitPolicy::For(np, cores));
  hvd::rt::HostThresholds thresholds;
  thresholds.one_shot_bytes = Number("ONE_SHOT", thresholds.one_shot_bytes);
  thresholds.staged_piece_bytes = Number("PIECE", thresholds.staged_piece_bytes);
  thresholds.stream_bytes = Number("STREAM", thresholds.stream_bytes);
  auto host = hvd::rt::HostCollectives::Create({&waiter, region, rank, np}, thresholds);
  Check(host.status());
  const std::map<std::string, hvd_dtype_t> dtypes = {
      {"float32", HVD_FLOAT32}, {"float16", HVD_FLOAT16}, {"bfloat16", HVD_BFLOAT16}};
  const char* dtype = getenv("DTYPE");
  Rank self{**host,
            shared,
            arena,
            dtypes.at(dtype == nullptr ? "float32" : dtype),
            Number("AVERAGE", 0) != 0 ? HVD_AVERAGE : HVD_SUM,
            std::move(op)};
  for (const size_t bytes : Sizes()) BenchSize(self, bytes);
  return 0;
}

void* Share(size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const int np = argc > 1 ? atoi(argv[1]) : 2;
  const std::string op = argc > 2 ? argv[2] : "allreduce";
  auto* shared = new (Share(sizeof(Shared))) Shared;
  shared->page.local_size = np;
  void* region = Share(hvd::rt::HostCollectives::HostRegionBytes(np));
  const std::vector<size_t> sizes = Sizes();
  std::vector<void*> arena(np);
  for (void*& buffer : arena) buffer = Share(*std::max_element(sizes.begin(), sizes.end()) + 4096);
  for (int rank = 1; rank < np; ++rank) {
    if (fork() == 0) _exit(RunRank(shared, region, arena, rank, op));
  }
  const int failed = RunRank(shared, region, arena, 0, op);
  for (int status = 0; wait(&status) > 0;) {
    if (status != 0) return 1;
  }
  return failed;
}
