// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/words.h"

#include <bit>

#include "runtime/collective/collectives.h"
#include "runtime/engine/direct/mix.h"

namespace hvd::rt {
namespace {

// Never 0 in its low 48 bits.
uint64_t HashOf(const Signature& s) {
  const uint32_t kind = static_cast<uint32_t>(s.kind) | uint32_t{s.refuses_joined} << 16;
  uint64_t hash = MixDirect(kind, (uint64_t{s.dtype} << 32) | s.op);
  hash = MixDirect(hash, (static_cast<uint64_t>(s.root) << 32) | static_cast<uint32_t>(s.ndim));
  const bool any_rows = s.kind == RequestKind::kAllgather || s.kind == RequestKind::kAlltoall;
  for (int d = any_rows ? 1 : 0; d < s.ndim; ++d) {
    hash = MixDirect(hash, static_cast<uint64_t>(s.shape[d]));
  }
  if (s.contents != 0) hash = MixDirect(hash, s.contents);
  return hash | 1;
}

}  // namespace

bool MayGoDirectly(const Signature& s) {
  if (s.group_count != 0 || s.compression != 0 || s.device_type != HVD_CPU) return false;
  if (s.prescale != 1.0 || s.postscale != 1.0) return false;
  switch (s.kind) {
    case RequestKind::kBarrier:
      return true;
    case RequestKind::kAllreduce:
      return s.op != HVD_ADASUM && !(s.dtype == HVD_BOOL && s.op == HVD_AVERAGE);
    case RequestKind::kBroadcast:
      return true;
    case RequestKind::kReduceScatter:
      return !(s.dtype == HVD_BOOL && s.op == HVD_AVERAGE);
    case RequestKind::kAllgather:
    case RequestKind::kAlltoall:
      return s.row_elements() != 0;  // else the rows cannot be told from the bytes
    default:
      return false;
  }
}

uint64_t DirectWordOf(const Signature& s) {
  if (!MayGoDirectly(s)) return kThroughBoard;
  size_t bytes = 0;
  if (s.kind != RequestKind::kBarrier) {
    const size_t width = DtypeBytes(static_cast<hvd_dtype_t>(s.dtype));
    if (s.rows() > static_cast<int64_t>(kMostDirectBytes)) return kThroughBoard;
    if (s.row_elements() > kMostDirectBytes) return kThroughBoard;
    bytes = s.elements() * width;
    if (bytes > kMostDirectBytes) return kThroughBoard;
  }
  return (HashOf(s) << 16) | bytes;
}

uint64_t DirectWordInPlace(const Signature& s, bool staged, size_t bytes) {
  uint64_t hash = MixDirect(HashOf(s), staged ? 0xbe5466cf34e90c6cull : 0x452821e638d01377ull);
  hash = MixDirect(hash, std::bit_cast<uint64_t>(s.prescale));
  hash = MixDirect(hash, std::bit_cast<uint64_t>(s.postscale));
  return ((hash | 1) << 16) | bytes;
}

}  // namespace hvd::rt
