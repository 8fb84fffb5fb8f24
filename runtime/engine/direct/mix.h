// SPDX-License-Identifier: Apache-2.0
// The hash that all ranks of a host compute alike, step by step.
#pragma once

#include <cstdint>

namespace hvd::rt {

inline uint64_t MixDirect(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

}  // namespace hvd::rt
