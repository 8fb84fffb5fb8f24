#include <cpuid.h>

#include "runtime/collective/kernels/levels.h"

namespace hvd {
namespace {

// clang 14 cannot ask for it by name.
bool HasF16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

KernelLevel BestKernelLevel() {
  static const KernelLevel best = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && HasF16c();
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2 && avx512) return KernelLevel::kAvx512;
    return avx2 ? KernelLevel::kAvx2 : KernelLevel::kBaseline;
  }();
  return best;
}

namespace {

ReduceKernel FindAtLevel(hvd_dtype_t dtype, hvd_op_t op, KernelLevel level) {
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

}  // namespace

ReduceKernel FindReduceKernel(hvd_dtype_t dtype, hvd_op_t op, KernelLevel level) {
  const ReduceKernel found = FindAtLevel(dtype, op, level);
  return found != nullptr ? found : FindPlainKernel(dtype, op);
}

}  // namespace hvd
