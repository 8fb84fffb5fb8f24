// SPDX-License-Identifier: Apache-2.0
// The arenas that the ranks of this host bring to an epoch: descriptors that pass through on their
// way to the other ranks. They are looked at, never mapped.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/descriptor.h"

namespace hvd::daemon {

class ArenaBox {
 public:
  explicit ArenaBox(int local_size) : arenas_(local_size) {}

  // InvalidArgument for a file that could hurt a rank which maps `bytes` of it.
  static absl::Status Check(const Descriptor& file, uint64_t bytes);
  void Put(int rank, Descriptor file, uint64_t bytes) { arenas_[rank] = {std::move(file), bytes}; }

  std::vector<uint64_t> Bytes() const;   // by local rank, 0: brought none
  std::vector<int> Descriptors() const;  // of those that brought one, in their order

 private:
  struct Arena {
    Descriptor file;
    uint64_t bytes = 0;
  };
  std::vector<Arena> arenas_;  // by local rank
};

}  // namespace hvd::daemon
