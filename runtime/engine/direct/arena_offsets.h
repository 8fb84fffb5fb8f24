// Where a request's tensors lie in this process's arena, for the mark on the board. Pure but for
// the arena's place.
#pragma once

#include <cstdint>

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

}  // namespace hvd
