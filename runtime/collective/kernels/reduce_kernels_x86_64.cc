#include "runtime/collective/kernels/levels.h"

namespace hvd {

KernelLevel BestKernelLevel() {
  static const KernelLevel best = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2 && avx512) return KernelLevel::kAvx512;
    return avx2 ? KernelLevel::kAvx2 : KernelLevel::kBaseline;
  }();
  return best;
}

ReduceKernel FindReduceKernel(hvd_dtype_t dtype, hvd_op_t op, KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return FindAvx512Kernel(dtype, op);
    case KernelLevel::kAvx2:
      return FindAvx2Kernel(dtype, op);
    case KernelLevel::kBaseline:
      break;
  }
  return FindBaselineKernel(dtype, op);
}

}  // namespace hvd
