#include <cstring>

#include "runtime/collective/kernels/copy.h"

namespace hvd {

CopyKernel FindCopyKernel(KernelLevel) { return CopyBytes; }

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) memcpy(to, from, bytes);
}

}  // namespace hvd
