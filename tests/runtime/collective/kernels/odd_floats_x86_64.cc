// SPDX-License-Identifier: Apache-2.0
#include <xmmintrin.h>

#include "tests/runtime/collective/kernels/odd_floats.h"

namespace hvd::rt::test {

void SetOddFloats(int turn) {
  constexpr uint32_t kUsual = 0x1f80, kFlush = 0x8040;
  constexpr uint32_t kTraps = _MM_MASK_OVERFLOW | _MM_MASK_INVALID | _MM_MASK_DIV_ZERO;
  const uint32_t rules[] = {kUsual, kUsual | kFlush | _MM_ROUND_UP,
                            (kUsual & ~kTraps) | _MM_ROUND_TOWARD_ZERO};
  _mm_setcsr(rules[turn % 3]);
}
void SetUsualFloats() { _mm_setcsr(0x1f80); }
uint64_t FloatRulesNow() { return _mm_getcsr() & ~0x3fu; }

}  // namespace hvd::rt::test
