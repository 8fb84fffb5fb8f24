// SPDX-License-Identifier: Apache-2.0
// What a program may have done to its threads' float arithmetic.
#pragma once

#include <cstdint>

namespace hvd::rt::test {

// By turns: nothing; denormals flushed (where the processor can) and rounded upwards; towards zero,
// and overflows and invalid operations trapped.
void SetOddFloats(int turn);
// As at a program's start.
void SetUsualFloats();
// The thread's rules now, to compare.
uint64_t FloatRulesNow();

}  // namespace hvd::rt::test
