// The instruction levels, one .cc each, with the types and operations that are used most; and
// plain_kernels.cc with the rest. Only reduce_kernels_<processor>.cc calls these. Null for what
// they do not have.
#pragma once

#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd {

ReduceKernel FindBaselineKernel(hvd_dtype_t dtype, hvd_op_t op);
ReduceKernel FindAvx2Kernel(hvd_dtype_t dtype, hvd_op_t op);    // needs F16C too
ReduceKernel FindAvx512Kernel(hvd_dtype_t dtype, hvd_op_t op);  // needs F, BW, DQ and VL
ReduceKernel FindPlainKernel(hvd_dtype_t dtype, hvd_op_t op);   // at every level

// Of at least kShortestCopy bytes.
void CopyBaseline(void* to, const void* from, size_t bytes);
void CopyAvx2(void* to, const void* from, size_t bytes);
void CopyAvx512(void* to, const void* from, size_t bytes);

// Where the C library's memcpy is as fast, and uses vectors.
inline constexpr size_t kShortestCopy = 1024;

}  // namespace hvd
