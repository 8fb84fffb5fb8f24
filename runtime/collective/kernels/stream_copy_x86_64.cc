#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/stream_copy.h"

namespace hvd {

void StreamCopy(void* to, const void* from, size_t bytes) {
  auto* destination = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % 64);
  memcpy(destination, source, head);
  size_t at = head;
  for (; at + 64 <= bytes; at += 64) {
    for (size_t i = 0; i < 64; i += 16) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(destination + at + i), v);
    }
  }
  memcpy(destination + at, source + at, bytes - at);
  // Such stores are in no order with the flags that say they are done.
  _mm_sfence();
}

}  // namespace hvd
