// SPDX-License-Identifier: Apache-2.0
// What the stand-in for NCCL computes: an element at a time, as slowly as it likes.
#pragma once

#include <cstddef>

#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {

size_t NcclBytesOf(NcclType type);
// Returns the number that the scalar at `scalar` stands for.
double NcclScalar(NcclType type, const void* scalar);
// `to` = `to` op `from`, element by element; an average sums here.
void NcclCombine(NcclType type, NcclOp op, size_t count, const char* from, char* to);
// `data` *= `factor`, or /= where `divides`: integers are divided as NCCL does, towards zero.
void NcclScale(NcclType type, size_t count, double factor, bool divides, char* data);

}  // namespace hvd::rt
