// SPDX-License-Identifier: Apache-2.0
// Times an allreduce over a transport alone, one process a host, without engine or launcher; tells
// the processor time too. Usage: message_bench RANK SIZE FOLDER [KEY=VALUE ...] FOLDER: fresh, seen
// by all ranks; they meet there. Keys: bytes, iters, segment, window, ring, chunk, deterministic,
// what (allreduce, chunks, allgather, broadcast), transport (tcp, ucx), device.
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/collective/message/message_collectives.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "runtime/transport/ucx/ucx_transport.h"

namespace {

double Seconds() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

double ProcessorSeconds() {
  rusage use = {};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(3);
}

// Through files; they appear whole.
std::vector<std::string> MeetInFolder(const std::string& folder, int rank, int size,
                                      const std::string& mine) {
  const auto name = [&](int r) { return folder + "/" + std::to_string(r); };
  std::ofstream(name(rank) + ".new", std::ios::binary) << mine;
  rename((name(rank) + ".new").c_str(), name(rank).c_str());
  std::vector<std::string> all(size);
  for (int r = 0; r < size; ++r) {
    while (all[r].empty()) {
      std::ifstream file(name(r), std::ios::binary);
      std::stringstream text;
      text << file.rdbuf();
      all[r] = text.str();
      usleep(1000);
    }
  }
  return all;
}

struct Settings {
  std::map<std::string, std::string> words;
  size_t Number(const std::string& key, size_t otherwise) const {
    const auto found = words.find(key);
    return found == words.end() ? otherwise : std::stoull(found->second);
  }
  std::string Text(const std::string& key, const std::string& otherwise) const {
    const auto found = words.find(key);
    return found == words.end() ? otherwise : found->second;
  }
};

void Run(hvd::rt::MessageCollectives& ranks, hvd::rt::Waiter* waiter, const Settings& settings) {
  const size_t count = settings.Number("bytes", 64 << 20) / sizeof(float);
  const std::string what = settings.Text("what", "allreduce");
  std::vector<float> data(count);
  std::vector<size_t> parts(ranks.size(), count / ranks.size() * sizeof(float));
  std::vector<double> seconds;
  const double used = ProcessorSeconds();
  const double start = Seconds();
  for (int i = -1; i < static_cast<int>(settings.Number("iters", 5)); ++i) {
    std::fill(data.begin(), data.end(), static_cast<float>(ranks.rank() + 1));
    Check(ranks.Barrier());
    const double before = Seconds();
    if (what == "allreduce") {
      Check(ranks.Allreduce({data.data(), data.data(), count, HVD_FLOAT32, HVD_SUM}));
    } else if (what == "chunks") {  // as between hosts of several ranks
      const hvd::rt::Chunks chunks(count, settings.Number("chunk", 4 << 20) / sizeof(float));
      hvd::rt::MessageReduce reduce;
      reduce.width = sizeof(float);
      reduce.kernel = hvd::rt::FindReduceKernel(HVD_FLOAT32, HVD_SUM, hvd::rt::BestKernelLevel());
      Check(hvd::rt::RunPipeline(
          waiter, {.chunks = chunks.size(), .across = [&](size_t k) {
                     reduce.count = chunks.count(k);
                     reduce.output = reinterpret_cast<std::byte*>(data.data() + chunks.begin(k));
                     reduce.input = reduce.output;
                     return ranks.StartAllreduce(reduce,
                                                 hvd::rt::MessageCollectives::Company::kPiped);
                   }}));
    } else if (what == "allgather") {
      Check(ranks.Allgather({data.data() + ranks.rank() * parts[0] / 4, data.data(), parts}));
    } else {
      Check(ranks.Broadcast({data.data(), data.data(), count * sizeof(float), 0}));
    }
    if (i >= 0) seconds.push_back(Seconds() - before);
  }
  std::sort(seconds.begin(), seconds.end());
  const double p50 = seconds[seconds.size() / 2];
  const double best = seconds[0];
  const double moved = 2.0 * (ranks.size() - 1) / ranks.size() * static_cast<double>(count) * 4;
  printf(
      "rank %d %s %zu bytes: %.2f ms, at best %.2f ms, 2(n-1)/n S/t = %.1f MB/s, %.1f %% of a "
      "core\n",
      ranks.rank(), what.c_str(), count * 4, p50 * 1e3, best * 1e3, moved / p50 * 1e-6,
      100 * (ProcessorSeconds() - used) / (Seconds() - start));
}

absl::StatusOr<std::unique_ptr<hvd::rt::Transport>> MakeTransport(const Settings& settings,
                                                                  int rank, int size) {
  const std::string device = settings.Text("device", "eth0");
  if (settings.Text("transport", "tcp") == "tcp") {
    return hvd::rt::MakeTcpTransport({std::string(32, 's'), rank, size, device});
  }
  hvd::rt::UcxOptions options;
  options.token = 0x5eed;
  options.rank = rank;
  options.size = size;
  options.net_devices = device;
  return hvd::rt::MakeUcxTransport(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int rank = atoi(argv[1]);
  const int size = atoi(argv[2]);
  Settings settings;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return 2;
    settings.words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  auto transport = MakeTransport(settings, rank, size);
  Check(transport.status());
  Check((*transport)->Connect(MeetInFolder(argv[3], rank, size, *(*transport)->Address())));

  hvd::HostPage page;
  page.local_size = 1;
  const int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  hvd::rt::Waiter waiter(&page, 0, &event_fd, hvd::rt::WaitPolicy::For(1, hvd::rt::UsableCores()));
  waiter.set_transport(transport->get());
  hvd::rt::MessageThresholds thresholds;
  thresholds.segment_bytes = settings.Number("segment", thresholds.segment_bytes);
  thresholds.window = settings.Number("window", thresholds.window);
  thresholds.ring_bytes = settings.Number("ring", thresholds.ring_bytes);
  thresholds.chunk_bytes = settings.Number("chunk", thresholds.chunk_bytes);
  thresholds.deterministic = settings.Number("deterministic", 0) != 0;
  std::vector<int> everyone(size);
  for (int r = 0; r < size; ++r) everyone[r] = r;
  hvd::rt::MessageCollectives ranks(
      {.waiter = &waiter, .transport = transport->get(), .ranks = everyone, .index = rank},
      thresholds);
  Run(ranks, &waiter, settings);
  Check(ranks.Barrier());
  return 0;
}
