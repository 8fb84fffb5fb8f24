// SPDX-License-Identifier: Apache-2.0
// The 17 types of elements, decoded bit by bit, so that nothing here is the library's arithmetic.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "hvd/hvd.h"

namespace fuzz {

using Value = std::complex<double>;

struct Type {
  enum Family { kSigned, kUnsigned, kBool, kFloat, kSmallFloat, kComplex };
  hvd_dtype_t code;
  size_t bytes;
  Family family;

  bool IsWhole() const { return family == kSigned || family == kUnsigned || family == kBool; }
};

const std::vector<Type>& Types();

// Whether the library offers this reduction of that type.
bool Reduces(const Type& type, hvd_op_t op);

// Writes a value that the type holds exactly; one that it does not hold ends the process.
void Store(const Type& type, Value value, unsigned char* place);
Value Load(const Type& type, const unsigned char* place);

// How far a result may lie from the exact one, relative to that: half a unit of the last place, or
// two where the library may round twice.
double Precision(const Type& type);

}  // namespace fuzz
