// SPDX-License-Identifier: Apache-2.0
// Sizes of what a signature describes, in bytes.
#pragma once

#include <cstddef>

#include "runtime/collective/collectives.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

inline size_t ElementBytes(const Signature& signature) {
  return DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype));
}
// In one row of the first dimension.
inline size_t RowBytes(const Signature& signature) {
  return signature.row_elements() * ElementBytes(signature);
}
// Returns the bytes of one tensor, or of all tensors of a group.
inline size_t TensorBytes(const Signature& signature) {
  return signature.elements() * ElementBytes(signature);
}

}  // namespace hvd::rt
