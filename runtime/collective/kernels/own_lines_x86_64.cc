#include "runtime/collective/kernels/own_lines.h"

namespace hvd {

// Not __builtin_prefetch, which fetches for reading unless the whole file is compiled for
// processors that have this instruction; on those that don't it does nothing.
void OwnLines(const void* memory, size_t bytes) {
  constexpr size_t kLine = 64;
  const auto* at = static_cast<const char*>(memory);
  for (const char* const end = at + bytes; at < end; at += kLine) {
    asm volatile("prefetchw %0" : : "m"(*at));
  }
}

}  // namespace hvd
