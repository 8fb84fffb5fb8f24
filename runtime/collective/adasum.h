// SPDX-License-Identifier: Apache-2.0
// Adasum: adds gradients that point in different directions and averages those that point in the
// same one. Two are combined as (1 - ab/2aa) a + (1 - ab/2bb) b, and all along a binary tree over
// the ranks: 0 with 1, 2 with 3, ..., then the pairs' results, and so on; an odd one waits for the
// next level.
//
// Over any Collectives: every rank gets one slice of everyone's tensors, the products of the slices
// are added up over the ranks, and the combined slices are gathered.
#pragma once

#include "runtime/collective/collectives.h"

namespace hvd::rt {

struct AdasumArgs {
  // Each with coefficients of its own; the same counts on all ranks.
  absl::Span<const ReducePart> parts;
  hvd_dtype_t dtype = HVD_FLOAT32;  // one of the floats; 16-bit ones are combined in float32
  double prescale = 1.0;
  double postscale = 1.0;
};

absl::Status Adasum(const AdasumArgs& args, Collectives* collectives);

}  // namespace hvd::rt
