#include "runtime/engine/request.h"

#include <cstdlib>

namespace hvd {

const char* KindName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kAllreduce:
      return "allreduce";
    case RequestKind::kAllgather:
      return "allgather";
    case RequestKind::kBroadcast:
      return "broadcast";
    case RequestKind::kBarrier:
      return "barrier";
    case RequestKind::kLeave:
      return "shutdown";
    case RequestKind::kReduceScatter:
      return "reduce-scatter";
    case RequestKind::kAlltoall:
      return "alltoall";
    case RequestKind::kJoin:
      return "join";
    case RequestKind::kAddProcessSet:
      return "add process set";
    case RequestKind::kRemoveProcessSet:
      return "remove process set";
  }
  return "unknown";
}

const char* DtypeName(hvd_dtype_t dtype) {
  switch (dtype) {
    case HVD_UINT8:
      return "uint8";
    case HVD_INT8:
      return "int8";
    case HVD_INT16:
      return "int16";
    case HVD_INT32:
      return "int32";
    case HVD_INT64:
      return "int64";
    case HVD_FLOAT16:
      return "float16";
    case HVD_FLOAT32:
      return "float32";
    case HVD_FLOAT64:
      return "float64";
    case HVD_BOOL:
      return "bool";
    case HVD_BFLOAT16:
      return "bfloat16";
  }
  return "unknown";
}

const char* OpName(hvd_op_t op) {
  switch (op) {
    case HVD_AVERAGE:
      return "average";
    case HVD_SUM:
      return "sum";
    case HVD_MIN:
      return "min";
    case HVD_MAX:
      return "max";
    case HVD_PRODUCT:
      return "product";
  }
  return "unknown";
}

size_t Signature::row_elements() const {
  size_t count = 1;
  for (int d = 1; d < ndim; ++d) count *= static_cast<size_t>(shape[d]);
  return count;
}

size_t Signature::elements() const {
  return ndim == 0 ? 1 : static_cast<size_t>(shape[0]) * row_elements();
}

std::string Describe(const Signature& signature) {
  std::string text = KindName(signature.kind);
  if (signature.kind == RequestKind::kBarrier || signature.kind == RequestKind::kLeave) return text;
  text += std::string(" ") + DtypeName(static_cast<hvd_dtype_t>(signature.dtype)) + " [";
  for (int d = 0; d < signature.ndim; ++d) {
    text += (d > 0 ? "," : "") + std::to_string(signature.shape[d]);
  }
  text += "]";
  if (signature.kind == RequestKind::kAllreduce) {
    text += std::string(" ") + OpName(static_cast<hvd_op_t>(signature.op));
  }
  if (signature.kind == RequestKind::kBroadcast) {
    text += " from rank " + std::to_string(signature.root);
  }
  if (signature.device_type != HVD_CPU) text += " on GPU";
  return text;
}

Request::~Request() {
  free(owned_result);
  for (RequestPart& part : parts) free(part.owned_result);
}

}  // namespace hvd
