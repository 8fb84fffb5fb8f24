// SPDX-License-Identifier: Apache-2.0
// Which reductions there are of which elements, and what messages call both.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hvd/hvd.h"
#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd::rt {

const char* DtypeName(hvd_dtype_t dtype);  // "float32"
const char* OpName(hvd_op_t op);           // "bitwise and"

inline bool IsBitwise(hvd_op_t op) { return op == HVD_BAND || op == HVD_BOR || op == HVD_BXOR; }
inline bool IsComplex(hvd_dtype_t dtype) {
  return dtype == HVD_COMPLEX64 || dtype == HVD_COMPLEX128;
}
inline bool IsFloat8(hvd_dtype_t dtype) {
  return dtype == HVD_FLOAT8_E4M3FN || dtype == HVD_FLOAT8_E5M2;
}
bool IsInteger(hvd_dtype_t dtype);  // bool is none

struct ReductionKind {
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op = HVD_SUM;
  double prescale = 1.0;
  double postscale = 1.0;
};

// InvalidArgument, beginning with the option that is to be changed: there is no such reduction.
absl::Status CheckReduction(const ReductionKind& kind);
// At this processor's best level. InvalidArgument likewise.
absl::StatusOr<ReduceKernel> KernelFor(const ReductionKind& kind);

}  // namespace hvd::rt
