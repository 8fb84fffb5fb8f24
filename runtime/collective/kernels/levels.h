// SPDX-License-Identifier: Apache-2.0
// The instruction levels, one .cc each, with the types and operations that are used most; and
// plain/ with the rest. Only processor_<family>.cc calls these. Null for what they do not
// have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd::rt {

ReduceKernel FindBaselineKernel(hvd_dtype_t dtype, hvd_op_t op);
ReduceKernel FindAvx2Kernel(hvd_dtype_t dtype, hvd_op_t op);    // needs F16C too
ReduceKernel FindAvx512Kernel(hvd_dtype_t dtype, hvd_op_t op);  // needs F, BW, DQ and VL
ReduceKernel FindPlainKernel(hvd_dtype_t dtype, hvd_op_t op);   // at every level

// REQUIRES for the copies: bytes >= kShortestCopy.
void CopyBaseline(void* to, const void* from, size_t bytes);
void CopyAvx2(void* to, const void* from, size_t bytes);
void CopyAvx512(void* to, const void* from, size_t bytes);

// Where the C library's memcpy is as fast, and uses vectors.
inline constexpr size_t kShortestCopy = 1024;

// The copy, for a level's width of vectors.
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

}  // namespace hvd::rt
