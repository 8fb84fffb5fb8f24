// SPDX-License-Identifier: Apache-2.0
// The common part of the peers of scripts/bench: sizes, the order of one timed call, and the
// output, a JSON line a size with the keys of hvd-bench. All buffers are rewritten and a barrier
// follows before each call, both untimed; a call's time is the slowest rank's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace peers {

// One rank's access to the system under measurement.
struct Peer {
  std::string name;
  std::string op = "allreduce";
  int rank = 0;
  int size = 1;
  double bus_factor = 0;                      // 0: allreduce's
  std::function<void(size_t bytes)> prepare;  // makes the buffers
  std::function<void()> fill;                 // rewrites all of them
  std::function<void()> call;                 // what is timed
  std::function<bool()> check;                // of the ends of what came out
  std::function<void()> barrier;
  std::function<double(double)> max;  // over the ranks
};

inline int IterationsFor(size_t bytes) {
  if (bytes <= 4096) return 2000;
  if (bytes <= 256 << 10) return 500;
  if (bytes <= 4 << 20) return 100;
  return bytes <= 128 << 20 ? 20 : 7;
}

// A size is left when its calls have taken this long, so that a peer which is slow with more ranks
// than cores holds up nobody.
inline constexpr double kPatienceUs = 1e6;
inline constexpr int kFewest = 5;

// Bytes, separated by commas.
inline std::vector<size_t> ParseSizes(const char* text) {
  std::vector<size_t> sizes;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    sizes.push_back(std::strtoull(text, &end, 10));
    if (end == text) std::exit(2);
  }
  return sizes;
}

inline double TimeOne(const Peer& peer) {
  peer.fill();
  peer.barrier();
  const auto begin = std::chrono::steady_clock::now();
  peer.call();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  if (!peer.check()) {
    std::fprintf(stderr, "%s: wrong %s\n", peer.name.c_str(), peer.op.c_str());
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
  const double factor = peer.bus_factor > 0 ? peer.bus_factor : 2.0 * (peer.size - 1) / peer.size;
  std::printf(
      "{\"peer\":\"%s\",\"op\":\"%s\",\"dtype\":\"float32\",\"np\":%d,\"bytes\":%zu,\"iters\":%zu,"
      "\"us_p50\":%.2f,\"us_p10\":%.2f,\"us_p90\":%.2f,\"algbw_GBps\":%.3f,\"busbw_GBps\":%.3f}\n",
      peer.name.c_str(), peer.op.c_str(), peer.size, bytes, us.size(), percentile(50),
      percentile(10), percentile(90), algorithm, algorithm * factor);
  std::fflush(stdout);
}

inline void Measure(const Peer& peer, const std::vector<size_t>& sizes) {
  for (const size_t bytes : sizes) {
    peer.prepare(bytes);
    const int iterations = IterationsFor(bytes);
    double spent = 0;  // the same on all ranks
    for (int i = 0; i < std::max(2, iterations / 10) && spent < kPatienceUs; ++i) {
      spent += TimeOne(peer);
    }
    spent = 0;
    std::vector<double> us;
    for (int i = 0; i < iterations && (i < kFewest || spent < kPatienceUs); ++i) {
      us.push_back(TimeOne(peer));
      spent += us.back();
    }
    if (peer.rank == 0) PrintResult(peer, bytes, us);
  }
}

// Makes `peer` an in-place float32 sum. `buffer`: this rank's, for so many elements.
inline void SumInPlace(Peer* peer, std::function<float*(size_t count)> buffer,
                       std::function<void(float* data, size_t count)> sum) {
  struct State {
    float* data = nullptr;
    size_t count = 0;
  };
  auto state = std::make_shared<State>();
  const float mine = static_cast<float>(peer->rank + 1);
  const float wanted = static_cast<float>(peer->size * (peer->size + 1)) / 2;
  peer->prepare = [=](size_t bytes) {
    state->count = std::max<size_t>(1, bytes / sizeof(float));
    state->data = buffer(state->count);
  };
  peer->fill = [=] { std::fill_n(state->data, state->count, mine); };
  peer->call = [=] { sum(state->data, state->count); };
  peer->check = [=] { return state->data[0] == wanted && state->data[state->count - 1] == wanted; };
}

// Makes `peer` a training step's gradients: a sum in place for each of `counts`, one after the
// other.
inline void SumGradients(Peer* peer, std::vector<size_t> counts,
                         std::function<void(float* data, size_t count)> sum) {
  auto tensors = std::make_shared<std::vector<std::vector<float>>>();
  const float mine = static_cast<float>(peer->rank + 1);
  const float wanted = static_cast<float>(peer->size * (peer->size + 1)) / 2;
  peer->op = "gradients";
  peer->prepare = [=](size_t) {
    tensors->clear();
    for (const size_t count : counts) tensors->emplace_back(count);
  };
  peer->fill = [=] {
    for (auto& tensor : *tensors) std::fill(tensor.begin(), tensor.end(), mine);
  };
  peer->call = [=] {
    for (auto& tensor : *tensors) sum(tensor.data(), tensor.size());
  };
  peer->check = [=] {
    return std::all_of(tensors->begin(), tensors->end(), [wanted](const auto& tensor) {
      return tensor.front() == wanted && tensor.back() == wanted;
    });
  };
}

}  // namespace peers
