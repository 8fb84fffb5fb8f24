// SPDX-License-Identifier: Apache-2.0
// The part that is x86-64's own: which of the levels there is, copies past the caches, and the
// register with the rules of float arithmetic.
#include <cpuid.h>
#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/levels.h"

namespace hvd::rt {

// ---- levels ----

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

// ---- copies ----

void CopyBaseline(void* to, const void* from, size_t bytes) { CopyInVectors<16>(to, from, bytes); }

CopyKernel FindCopyKernel(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return CopyAvx512;
    case KernelLevel::kAvx2:
      return CopyAvx2;
    case KernelLevel::kBaseline:
      break;
  }
  return CopyBaseline;
}

namespace {

// Where the processor's string copy crawls: the destination up to 31 bytes after the source within
// a page. (Measured on Zen 3: 2 to 3 GB/s there, 30 at 33 to 63 bytes, 50 elsewhere.)
bool FollowsWithinPage(const void* to, const void* from) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t after =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  return after - 1 < 31;
}

}  // namespace

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (bytes < kShortestCopy || !FollowsWithinPage(to, from)) {
    memcpy(to, from, bytes);
    return;
  }
  static const CopyKernel copy = FindCopyKernel(BestKernelLevel());
  copy(to, from, bytes);
}

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

// Not __builtin_prefetch, which fetches for reading unless the whole file is compiled for
// processors that have this instruction; on those that don't it does nothing.
void OwnLines(const void* memory, size_t bytes) {
  constexpr size_t kLine = 64;
  const auto* at = static_cast<const char*>(memory);
  for (const char* const end = at + bytes; at < end; at += kLine) {
    asm volatile("prefetchw %0" : : "m"(*at));
  }
}

// ---- rules of float arithmetic ----

namespace {

constexpr uint32_t kAtStart = 0x1f80;  // every exception masked, to nearest, denormals kept
constexpr uint32_t kRaised = 0x3f;     // not rules: which exceptions there have been

}  // namespace

// Nothing here computes with the x87, which has rules of its own.
FloatRules::FloatRules() {
  const uint32_t rules = _mm_getcsr();
  if ((rules & ~kRaised) == kAtStart) return;
  changed_ = true;
  memcpy(saved_, &rules, sizeof(rules));
  _mm_setcsr(kAtStart);
}

FloatRules::~FloatRules() {
  if (!changed_) return;
  uint32_t rules;
  memcpy(&rules, saved_, sizeof(rules));
  _mm_setcsr(rules);
}

}  // namespace hvd::rt
