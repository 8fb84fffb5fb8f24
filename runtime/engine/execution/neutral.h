// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/engine/request/request.h"

namespace hvd::rt {

// Writes the values that a rank that has joined brings to a reduction, so that it changes nothing.
void FillNeutral(const Signature& signature, void* elements, size_t count);

}  // namespace hvd::rt
