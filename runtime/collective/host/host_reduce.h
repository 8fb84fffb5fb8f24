// SPDX-License-Identifier: Apache-2.0
// A reduction on one host whose slices belong to the ranks, as the ways through the host's memory
// are told of it. Which way is right depends on the size and on where the tensors lie:
// HostCollectives chooses, the same on every rank.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/tensor_view.h"

namespace hvd::rt {

// Rank r sums elements bounds[r] to bounds[r + 1].
struct HostReduce {
  ReduceKernel kernel = nullptr;
  ReduceTask scales;  // its divisor and scales
  const TensorView& tensors;
  const std::vector<size_t>& bounds;  // not used by one shot
  bool gather = true;                 // collect the other ranks' slices too, into the tensors
  std::byte* slice_output = nullptr;  // where this rank's own slice goes if not

  // Elements; may be none.
  struct Range {
    size_t begin = 0;
    size_t count = 0;
  };
  // Returns the part of `owner`'s slice that comes in a round that takes `piece` elements of each.
  Range Piece(int owner, uint64_t round, size_t piece) const;
  size_t largest_slice() const;  // elements
  size_t bytes() const { return tensors.count() * tensors.element_bytes(); }
  void Combine(absl::Span<const void* const> sources, absl::Span<void* const> destinations,
               size_t count) const;
};

}  // namespace hvd::rt
