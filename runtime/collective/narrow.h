// SPDX-License-Identifier: Apache-2.0
// float32 and float64 ↔ float16 and bfloat16, rounded to nearest even; a NaN stays one. A float64
// is rounded to float32 first. A program's settings for float arithmetic do not matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hvd/hvd.h"

namespace hvd::rt {

// From `wide`'s elements (float32 or float64) to 16 bits, and back. REQUIRES: `narrow` is float16
// or bfloat16.
struct NarrowPair {
  hvd_dtype_t wide = HVD_FLOAT32;
  hvd_dtype_t narrow = HVD_FLOAT16;
};
// `scale`: multiplies what is wide, before or after.
void Narrow(NarrowPair types, const void* wide, uint16_t* narrow, size_t count, double scale = 1);
void Widen(NarrowPair types, const uint16_t* narrow, void* wide, size_t count, double scale = 1);

}  // namespace hvd::rt
