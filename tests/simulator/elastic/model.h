// SPDX-License-Identifier: Apache-2.0
// The state that a simulated program trains: a value that says from which steps, of which ranks, it
// has come, so that two states after the same number of steps are told apart. As bytes, it is as
// long as the ranks of a host need for a share each.
#pragma once

#include <array>
#include <cstdint>

namespace hvd::elastic_simulator {

inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15ull + b + 0x7f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

inline constexpr int kModelWords = 64;  // 8 lines of 64 bytes
using ModelBytes = std::array<uint64_t, kModelWords>;

struct Model {
  uint64_t steps = 0;
  uint64_t lineage = 1;

  bool operator==(const Model&) const = default;
  // Takes a step with the ranks' sum.
  void Step(uint64_t sum) {
    ++steps;
    lineage = Mix(lineage, sum);
  }
  ModelBytes Bytes() const {
    ModelBytes bytes{};
    for (int i = 0; i < kModelWords; ++i) bytes[i] = Mix(lineage, steps * kModelWords + i);
    bytes[0] = steps;
    bytes[1] = lineage;
    return bytes;
  }
  // False: the bytes are of several states.
  bool Read(const ModelBytes& bytes) {
    steps = bytes[0];
    lineage = bytes[1];
    return Bytes() == bytes;
  }
};

}  // namespace hvd::elastic_simulator
