#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd {

std::string_view KernelLevelName(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return "avx512";
    case KernelLevel::kAvx2:
      return "avx2";
    case KernelLevel::kBaseline:
      break;
  }
  return "baseline";
}

}  // namespace hvd
