// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/tensor_places.h"

#include "absl/strings/str_cat.h"
#include "proto/page/memory_limits.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {

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

absl::Status TensorPlaces::WhyNull(size_t local_rank, size_t bytes, const MapRefusal& why) const {
  if (why.error == 0) {
    return absl::InternalError("a tensor of another rank of this host lies outside its arena");
  }
  const Owner& mine = owners_[static_cast<size_t>(local_rank_)];
  return absl::ResourceExhaustedError(absl::StrCat(
      "rank ", mine.rank, " cannot map a tensor of ", SayBytes(bytes), " of rank ",
      owners_[local_rank].rank, ": ", WhyRefused(why.bytes, ReadMemoryLimits(why.error))));
}

}  // namespace hvd::rt
