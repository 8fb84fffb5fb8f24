// Times the collectives of one host alone, without engine or launcher, in the peers' format: a JSON
// line a size. Ranks are forked and pinned; the whole buffer is rewritten before each call.
// Usage: collective_bench [np] [auto|staged|one-shot|zero-copy] [piece KiB]; SIZES="4 1024 .."
// ITERS=n
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/collective/host_collectives.h"

namespace {

struct Shared {
  hvd::HostPage page;
  alignas(64) double worst[hvd::kMaxLocalRanks];
};

double NowUs() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
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

int Iterations(size_t bytes) {
  if (const char* text = getenv("ITERS")) return atoi(text);
  if (bytes <= 4096) return 2000;
  if (bytes <= (1 << 18)) return 500;
  return bytes <= (4 << 20) ? 100 : 20;
}

void Report(const char* name, int np, size_t bytes, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const double p50 = us[us.size() / 2];
  printf(
      "{\"peer\":\"%s\",\"op\":\"allreduce\",\"dtype\":\"float32\",\"np\":%d,\"bytes\":%zu,"
      "\"iters\":%zu,\"us_p50\":%.2f,\"us_p10\":%.2f,\"us_p90\":%.2f,\"busbw_GBps\":%.3f}\n",
      name, np, bytes, us.size(), p50, us[us.size() / 10], us[us.size() * 9 / 10],
      bytes / p50 / 1e3 * 2 * (np - 1) / np);
  fflush(stdout);
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(3);
}

void BenchSize(hvd::HostCollectives& host, Shared* shared, size_t bytes, const char* name) {
  const size_t count = std::max<size_t>(1, bytes / 4);
  std::vector<float> data(count);
  const int iterations = Iterations(bytes);
  std::vector<double> us;
  for (int i = -std::max(5, iterations / 10); i < iterations; ++i) {
    std::fill(data.begin(), data.end(), static_cast<float>(host.rank() + 1));
    Check(host.Barrier());
    const double start = NowUs();
    Check(host.Allreduce({data.data(), data.data(), count, HVD_FLOAT32, HVD_SUM}));
    shared->worst[host.rank()] = NowUs() - start;
    const float want = host.size() * (host.size() + 1) / 2.0f;
    if (data[0] != want || data[count / 2] != want || data[count - 1] != want) _exit(4);
    Check(host.Barrier());
    if (i >= 0) us.push_back(*std::max_element(shared->worst, shared->worst + host.size()));
    Check(host.Barrier());
  }
  if (host.rank() == 0) Report(name, host.size(), bytes, us);
}

int RunRank(Shared* shared, void* region, int rank, char** argv) {
  const int np = static_cast<int>(shared->page.local_size);
  const int cores = hvd::UsableCores();
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(rank % cores, &mine);
  if (np <= cores) sched_setaffinity(0, sizeof(mine), &mine);
  hvd::Waiter waiter(&shared->page, rank, nullptr, hvd::WaitPolicy::For(np, cores));
  const std::string path = argv[1] != nullptr ? argv[1] : "auto";
  hvd::HostThresholds thresholds;
  if (path == "staged") thresholds.one_shot_bytes = 0;
  if (path == "one-shot") thresholds.one_shot_bytes = hvd::HostRegion::kSlotBytes;
  if (argv[1] != nullptr && argv[2] != nullptr) {
    thresholds.staged_piece_bytes = atoi(argv[2]) * size_t{1024};
  }
  auto host = hvd::HostCollectives::Create({&waiter, region, rank, np}, thresholds);
  Check(host.status());
  for (const size_t bytes : Sizes()) BenchSize(**host, shared, bytes, ("hvd-" + path).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int np = argc > 1 ? atoi(argv[1]) : 2;
  const size_t bytes = sizeof(Shared) + 4096 + hvd::HostCollectives::HostRegionBytes(np);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (memory) Shared;
  shared->page.local_size = np;
  void* region = static_cast<char*>(memory) + (sizeof(Shared) + 4095) / 4096 * 4096;
  for (int rank = 1; rank < np; ++rank) {
    if (fork() == 0) _exit(RunRank(shared, region, rank, argv + std::min(argc - 1, 1)));
  }
  const int failed = RunRank(shared, region, 0, argv + std::min(argc - 1, 1));
  for (int status = 0; wait(&status) > 0;) {
    if (status != 0) return 1;
  }
  return failed;
}
