// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/tensor_places.h"

#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {

namespace {

bool IsOneOnCpu(const Signature& s) { return s.group_count == 0 && s.device_type == HVD_CPU; }

}  // namespace

ArenaOffsets OffsetsInArena(const Request& request, const HostArenas* arenas) {
  const Signature& s = request.signature;
  const bool writes = s.kind == RequestKind::kAllreduce || s.kind == RequestKind::kBroadcast;
  if (arenas == nullptr || !writes || !IsOneOnCpu(s)) return {};
  const ArenaOffsets offsets{arenas->Offer(request.buffers.input, TensorBytes(s)),
                             arenas->Offer(request.buffers.output, TensorBytes(s))};
  return offsets.input >= 0 && offsets.output >= 0 ? offsets : ArenaOffsets{};
}

int64_t InputInArena(const Request& request, const HostArenas* arenas) {
  if (arenas == nullptr || !IsOneOnCpu(request.signature)) return -1;
  return arenas->Offer(request.buffers.input, TensorBytes(request.signature));
}

absl::Status OutsideArena() {
  return absl::InternalError("a tensor of another rank of this host lies outside its arena");
}

}  // namespace hvd
