#include <cstring>

#include "runtime/collective/kernels/copy.h"

namespace hvd {

CopyKernel FindCopyKernel(KernelLevel) { return CopyBytes; }

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) memcpy(to, from, bytes);
}

void StreamCopy(void* to, const void* from, size_t bytes) { CopyBytes(to, from, bytes); }

void OwnLines(const void* memory, size_t bytes) {
  constexpr size_t kLine = 64;
  const auto* at = static_cast<const char*>(memory);
  for (const char* const end = at + bytes; at < end; at += kLine) __builtin_prefetch(at, 1);
}

}  // namespace hvd
