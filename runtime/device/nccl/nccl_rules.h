// SPDX-License-Identifier: Apache-2.0
// What NCCL does as hvd means it, and how it is asked. Pure.
#pragma once

#include <cstddef>
#include <optional>

#include "runtime/collective/collectives.h"
#include "runtime/engine/request/request.h"
#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {

// Numbers as NCCL has them.
struct NcclNumbers {
  NcclType type = kNcclUint8;
  size_t each = 1;  // of them in an element of hvd's: a complex one is two
};

// How elements are reduced: nothing where NCCL does not do it, or not to the same result.
struct NcclReduction {
  NcclNumbers numbers;
  NcclOp op = kNcclSum;
  double scale = 1;  // of each number before the sum
};
struct ReductionAsked {
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op = HVD_SUM;
  double prescale = 1;
  double postscale = 1;
  int divisor = 0;  // of an average, where it is not the number of ranks
};
std::optional<NcclReduction> PlanNcclReduction(const ReductionAsked& asked);

// Whether requests of this signature go by NCCL where their process set does. The same on all
// ranks, so it knows nothing of the ranks. The others go by way of the host.
bool GoesByNccl(const Signature& signature);

// The scalar that NCCL multiplies with: `scale` as a number of `type`, in `bytes`. False: it cannot
// be told exactly enough.
bool PutNcclScalar(NcclType type, double scale, unsigned char bytes[8]);

}  // namespace hvd::rt
