// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in the arenas that a host's ranks share: a request's own, for its mark, and the
// others', as this process sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/request/request.h"
#include "runtime/session/host_arenas.h"

namespace hvd::rt {

// -1: not in the arena, or not to be used by the others.
struct ArenaOffsets {
  int64_t input = -1;
  int64_t output = -1;
};

// Returns the offsets of a single allreduce or broadcast on the CPU, where ranks write to the
// others' tensors: both or none. `arenas` may be null.
ArenaOffsets OffsetsInArena(const Request& request, const HostArenas* arenas);
// Returns the offset of a single tensor on the CPU that the others only read; -1 as above.
int64_t InputInArena(const Request& request, const HostArenas* arenas);

// The others' tensors, by what their marks say.
class TensorPlaces {
 public:
  struct Owner {
    int local_rank = 0;  // in the job
    int rank = 0;        // as people know it
  };
  // `arenas`: borrowed; null: nobody has one. `owners` by local rank of the set; `local_rank`: this
  // process's.
  TensorPlaces(const HostArenas* arenas, std::vector<Owner> owners, int local_rank)
      : arenas_(arenas), owners_(std::move(owners)), local_rank_(local_rank) {}

  const HostArenas* arenas() const { return arenas_; }
  // The number of the set's ranks on this host.
  size_t ranks() const { return owners_.size(); }
  // Internal: it lies outside that rank's arena, so its mark says nonsense. ResourceExhausted: this
  // process has no address space for it.
  absl::StatusOr<std::byte*> Address(size_t local_rank, int64_t at, size_t bytes) const {
    MapRefusal why;
    std::byte* seen = arenas_->Address(owners_[local_rank].local_rank, at, bytes, &why);
    if (seen == nullptr) return WhyNull(local_rank, bytes, why);
    return seen;
  }

 private:
  absl::Status WhyNull(size_t local_rank, size_t bytes, const MapRefusal& why) const;

  const HostArenas* arenas_;
  std::vector<Owner> owners_;
  int local_rank_;
};

}  // namespace hvd::rt
