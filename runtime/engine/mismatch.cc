#include "runtime/engine/mismatch.h"

#include <algorithm>

namespace hvd {
namespace {

bool ShapesAgree(const Signature& a, const Signature& b) {
  if (a.ndim != b.ndim) return false;
  const int first = a.kind == RequestKind::kAllgather ? 1 : 0;
  for (int d = first; d < a.ndim; ++d) {
    if (a.shape[d] != b.shape[d]) return false;
  }
  return true;
}

// What differs, in the order in which a user would look.
const char* Difference(const Signature& a, const Signature& b) {
  if (a.kind != b.kind) return "operations";
  if (a.dtype != b.dtype) return "dtypes";
  if (a.device_type != b.device_type) return "devices";
  if (a.ndim != b.ndim) return "numbers of dimensions";
  if (!ShapesAgree(a, b)) {
    return a.kind == RequestKind::kAllgather ? "shapes beyond the first dimension" : "shapes";
  }
  if (a.op != b.op) return "reduction ops";
  return "roots";
}

}  // namespace

bool Compatible(const Signature& a, const Signature& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.root == b.root &&
         a.device_type == b.device_type && ShapesAgree(a, b);
}

std::string MismatchText(std::string_view name, const Asker& a, const Asker& b) {
  const Asker& low = a.rank <= b.rank ? a : b;
  const Asker& high = a.rank <= b.rank ? b : a;
  return "tensor '" + std::string(name) + "': ranks ask for different " +
         Difference(a.signature, b.signature) + ": rank " + std::to_string(low.rank) +
         " asked for " + Describe(low.signature) + ", rank " + std::to_string(high.rank) + " for " +
         Describe(high.signature) +
         ". Nothing was exchanged; make all ranks ask for the same under one name";
}

}  // namespace hvd
