// SPDX-License-Identifier: Apache-2.0
#include <cfenv>

#include "tests/runtime/collective/kernels/odd_floats.h"

namespace hvd::rt::test {

void SetOddFloats(int turn) {
  SetUsualFloats();
  if (turn % 3 == 1) std::fesetround(FE_UPWARD);
  if (turn % 3 == 2) std::fesetround(FE_TOWARDZERO);
}
void SetUsualFloats() { std::fesetenv(FE_DFL_ENV); }
uint64_t FloatRulesNow() { return static_cast<uint64_t>(std::fegetround()); }

}  // namespace hvd::rt::test
