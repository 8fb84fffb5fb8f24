// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/watch/metrics.h"

#include "runtime/collective/collectives.h"

namespace hvd::rt {

uint64_t InputBytes(const Request& request) {
  const Signature& signature = request.signature;
  if (request.result.agreed_only) return 0;
  switch (signature.kind) {
    case RequestKind::kAllreduce:
    case RequestKind::kAllgather:
    case RequestKind::kBroadcast:
    case RequestKind::kReduceScatter:
    case RequestKind::kAlltoall:
    case RequestKind::kSend:
      break;
    default:
      return 0;
  }
  const size_t width = DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype));
  if (request.buffers.parts.empty()) return signature.elements() * width;
  uint64_t bytes = 0;
  for (const RequestPart& part : request.buffers.parts) {
    uint64_t elements = 1;
    for (const int64_t length : part.shape) elements *= static_cast<uint64_t>(length);
    bytes += elements * width;
  }
  return bytes;
}

}  // namespace hvd::rt
