#include "runtime/collective/kernels/levels.h"

namespace hvd {

KernelLevel BestKernelLevel() { return KernelLevel::kBaseline; }

ReduceKernel FindReduceKernel(hvd_dtype_t dtype, hvd_op_t op, KernelLevel) {
  const ReduceKernel found = FindBaselineKernel(dtype, op);
  return found != nullptr ? found : FindPlainKernel(dtype, op);
}

}  // namespace hvd
