// SPDX-License-Identifier: Apache-2.0
// How a buffer is divided among ranks.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace hvd::rt {

// parts + 1 bounds from 0 to count; slices differ by at most 64 elements, and begin at multiples of
// 64 elements where there are enough, so that no cache line has two owners.
std::vector<size_t> EvenSlices(size_t count, int parts);
// One of these bounds: where slice `index` begins.
size_t EvenBound(size_t count, int parts, int index);

std::pair<size_t, size_t> SumAndLargest(absl::Span<const size_t> sizes);

}  // namespace hvd::rt
