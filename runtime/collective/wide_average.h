// Averages of integers over ranks whose sums travel: they travel in a wider type, so that nothing
// wraps before it is divided. (Where one kernel sums everyone's, it does so by itself.)
#pragma once

#include "runtime/collective/collectives.h"

namespace hvd {

// Whether a reduction is one of these.
inline bool AveragesIntegers(hvd_op_t op, hvd_dtype_t dtype) {
  return op == HVD_AVERAGE && (dtype == HVD_UINT8 || dtype == HVD_INT8 || dtype == HVD_INT16 ||
                               dtype == HVD_INT32 || dtype == HVD_INT64);
}

// By sums over the ranks. REQUIRES: AveragesIntegers(args.op, args.dtype).
absl::Status AverageIntegers(const ReduceArgs& args, Collectives* ranks);
absl::Status AverageIntegers(const ReduceScatterArgs& args, Collectives* ranks);

}  // namespace hvd
