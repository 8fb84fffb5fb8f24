// SPDX-License-Identifier: Apache-2.0
// Do two ranks ask for the same thing, and if not, how to say so. Pure.
#pragma once

#include <string>
#include <string_view>

#include "runtime/engine/request/request.h"

namespace hvd::rt {

// True when the two may run as one collective: all equal, except that the first dimension of an
// allgather or alltoall may differ.
bool Compatible(const Signature& a, const Signature& b);

// A rank with what it asked for.
struct Asker {
  int rank = 0;
  Signature signature;
};

// The one message that every rank gets. REQUIRES: !Compatible(a.signature, b.signature).
std::string MismatchText(std::string_view name, const Asker& a, const Asker& b);

// With what the tensors are to the caller of this rank, which only that knows. Empty: it has not
// told.
std::string WithContents(std::string_view mismatch, std::string_view contents);

}  // namespace hvd::rt
