// The copy, for a level's width of vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hvd {

// REQUIRES: bytes >= kBytes.
template <size_t kBytes>
void CopyInVectors(void* to, const void* from, size_t bytes) {
  typedef char Vector __attribute__((vector_size(kBytes), aligned(1), may_alias));
  constexpr size_t kStep = 4 * kBytes;
  auto* destination = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const auto load = [&](size_t at) { return *reinterpret_cast<const Vector*>(source + at); };
  const auto store = [&](size_t at, Vector v) { *reinterpret_cast<Vector*>(destination + at) = v; };
  store(0, load(0));
  // From here on no store crosses a cache line.
  size_t at = kBytes - reinterpret_cast<uintptr_t>(to) % kBytes;
  for (; at + kStep <= bytes; at += kStep) {
    const Vector a = load(at), b = load(at + kBytes);
    const Vector c = load(at + 2 * kBytes), d = load(at + 3 * kBytes);
    store(at, a);
    store(at + kBytes, b);
    store(at + 2 * kBytes, c);
    store(at + 3 * kBytes, d);
  }
  memcpy(destination + at, source + at, bytes - at);
}

}  // namespace hvd
