// SPDX-License-Identifier: Apache-2.0
// For processors that have no file of their own: one level, and the language's own copies and rules
// of arithmetic.
#include <cfenv>
#include <cstring>
#include <new>

#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/levels.h"

namespace hvd::rt {

// ---- levels ----

KernelLevel BestKernelLevel() { return KernelLevel::kBaseline; }

ReduceKernel FindReduceKernel(hvd_dtype_t dtype, hvd_op_t op, KernelLevel) {
  const ReduceKernel found = FindBaselineKernel(dtype, op);
  return found != nullptr ? found : FindPlainKernel(dtype, op);
}

// ---- copies ----

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

// ---- rules of float arithmetic ----

FloatRules::FloatRules() {
  static_assert(sizeof(std::fenv_t) <= sizeof(saved_));
  changed_ = std::fegetenv(new (saved_) std::fenv_t) == 0 && std::fesetenv(FE_DFL_ENV) == 0;
}

FloatRules::~FloatRules() {
  if (changed_) std::fesetenv(reinterpret_cast<const std::fenv_t*>(saved_));
}

}  // namespace hvd::rt
