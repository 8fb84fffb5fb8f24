// SPDX-License-Identifier: Apache-2.0
// Numbers that a simulation draws from its seed: small, and the same everywhere, unlike the
// standard library's distributions.
#pragma once

#include <cstdint>

namespace hvd::rt::simulator {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // 0 .. n-1
  uint32_t Below(uint64_t n) { return static_cast<uint32_t>((Next() >> 32) * n >> 32); }
  bool OneIn(uint32_t n) { return Below(n) == 0; }
  // least .. most
  int Between(int least, int most) {
    return least + static_cast<int>(Below(static_cast<uint64_t>(most - least + 1)));
  }
  double Seconds(double least, double most) {
    return least + (most - least) * static_cast<double>(Next() >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

}  // namespace hvd::rt::simulator
