// SPDX-License-Identifier: Apache-2.0
// Reductions over ranks whose sums travel in a wider type: averages of integers, so that nothing
// wraps before it is divided; and float8, whose sums would lose too much on every way. (Where one
// kernel combines everyone's, it does so by itself.) Minima and maxima of float8 are float8 anyway.
#pragma once

#include "runtime/collective/collectives.h"
#include "runtime/collective/reduction_rules.h"

namespace hvd::rt {

// Whether a reduction is one of these.
inline bool TravelsWide(hvd_op_t op, hvd_dtype_t dtype) {
  if (IsFloat8(dtype)) return op == HVD_SUM || op == HVD_AVERAGE || op == HVD_PRODUCT;
  return op == HVD_AVERAGE && IsInteger(dtype);
}

// By a reduction of wider elements. REQUIRES: TravelsWide(args.op, args.dtype).
absl::Status ReduceWide(const ReduceArgs& args, Collectives* ranks);
absl::Status ReduceWide(const ReduceScatterArgs& args, Collectives* ranks);

}  // namespace hvd::rt
