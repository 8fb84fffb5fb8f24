// What the peers of scripts/bench share: sizes, the order of one timed call, and the output, a JSON
// line a size with the keys of hvd-bench. Every peer times an in-place float32 sum: the whole
// buffer rewritten and a barrier before each call, both untimed; a call's time is the slowest
// rank's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace peers {

// One rank's access to the system under measurement.
struct Peer {
  std::string name;
  int rank = 0;
  int size = 1;
  std::function<float*(size_t count)> buffer;  // this rank's, for `count` elements
  std::function<void()> barrier;
  std::function<void(float* data, size_t count)> sum;
  std::function<double(double)> max;  // over the ranks
};

inline int IterationsFor(size_t bytes) {
  if (bytes <= 4096) return 2000;
  if (bytes <= 256 << 10) return 500;
  if (bytes <= 4 << 20) return 100;
  return 20;
}

// Bytes, separated by commas.
inline std::vector<size_t> ParseSizes(const char* text) {
  std::vector<size_t> sizes;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    sizes.push_back(std::strtoull(text, &end, 10));
    if (end == text) std::exit(2);
  }
  return sizes;
}

inline double TimeOne(const Peer& peer, float* data, size_t count) {
  std::fill_n(data, count, static_cast<float>(peer.rank + 1));
  peer.barrier();
  const auto begin = std::chrono::steady_clock::now();
  peer.sum(data, count);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const float wanted = static_cast<float>(peer.size * (peer.size + 1)) / 2;
  if (data[0] != wanted || data[count - 1] != wanted) {
    std::fprintf(stderr, "%s: wrong sum\n", peer.name.c_str());
    std::exit(3);
  }
  return peer.max(took.count());
}

inline void PrintResult(const Peer& peer, size_t bytes, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto percentile = [&us](size_t p) {
    return us[std::min(us.size() - 1, us.size() * p / 100)];
  };
  const double algorithm = static_cast<double>(bytes) / percentile(50) / 1e3;
  std::printf(
      "{\"peer\":\"%s\",\"op\":\"allreduce\",\"dtype\":\"float32\",\"np\":%d,\"bytes\":%zu,"
      "\"iters\":%zu,"
      "\"us_p50\":%.2f,\"us_p10\":%.2f,\"us_p90\":%.2f,\"algbw_GBps\":%.3f,\"busbw_GBps\":%.3f}\n",
      peer.name.c_str(), peer.size, bytes, us.size(), percentile(50), percentile(10),
      percentile(90), algorithm, algorithm * 2 * (peer.size - 1) / peer.size);
  std::fflush(stdout);
}

inline void Measure(const Peer& peer, const std::vector<size_t>& sizes) {
  for (const size_t bytes : sizes) {
    const size_t count = std::max<size_t>(1, bytes / sizeof(float));
    float* const data = peer.buffer(count);
    const int iterations = IterationsFor(bytes);
    for (int i = 0; i < std::max(5, iterations / 10); ++i) TimeOne(peer, data, count);
    std::vector<double> us;
    for (int i = 0; i < iterations; ++i) us.push_back(TimeOne(peer, data, count));
    if (peer.rank == 0) PrintResult(peer, bytes, us);
  }
}

}  // namespace peers
