// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in the arenas that a host's ranks share: a request's own, for its mark, and the
// others', as this process sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/engine/request/request.h"
#include "runtime/session/host_arenas.h"

namespace hvd {

// -1: not in the arena, or not to be used by the others.
struct ArenaOffsets {
  int64_t input = -1;
  int64_t output = -1;
};

// Of a single allreduce or broadcast on the CPU, where ranks write to the others' tensors, both or
// none. `arenas` may be null.
ArenaOffsets OffsetsInArena(const Request& request, const HostArenas* arenas);
// Of a single tensor on the CPU that the others only read; -1 as above.
int64_t InputInArena(const Request& request, const HostArenas* arenas);

// Another rank's mark says nonsense.
absl::Status OutsideArena();

// The others' tensors, by what their marks say.
class TensorPlaces {
 public:
  // `arenas`: borrowed; null: nobody has one. `ranks_in_job`: the local ranks in the job, by local
  // rank of the set.
  TensorPlaces(const HostArenas* arenas, std::vector<int> ranks_in_job)
      : arenas_(arenas), ranks_in_job_(std::move(ranks_in_job)) {}

  const HostArenas* arenas() const { return arenas_; }
  // Of the set on this host.
  size_t ranks() const { return ranks_in_job_.size(); }
  // Null: it lies outside that rank's arena.
  std::byte* Address(size_t local_rank, int64_t at, size_t bytes) const {
    return arenas_->Address(ranks_in_job_[local_rank], at, bytes);
  }

 private:
  const HostArenas* arenas_;
  std::vector<int> ranks_in_job_;
};

}  // namespace hvd
