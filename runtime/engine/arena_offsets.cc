#include "runtime/engine/arena_offsets.h"

#include "runtime/collective/collectives.h"

namespace hvd {

ArenaOffsets OffsetsInArena(const Request& request, const HostArenas* arenas) {
  const Signature& s = request.signature;
  if (arenas == nullptr || s.kind != RequestKind::kAllreduce || s.group_count > 0 ||
      s.device_type != HVD_CPU) {
    return {};
  }
  const size_t bytes = s.elements() * DtypeBytes(static_cast<hvd_dtype_t>(s.dtype));
  const ArenaOffsets offsets{arenas->Offer(request.input, bytes),
                             arenas->Offer(request.output, bytes)};
  return offsets.input >= 0 && offsets.output >= 0 ? offsets : ArenaOffsets{};
}

}  // namespace hvd
