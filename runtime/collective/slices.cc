// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/slices.h"

#include <algorithm>

#include "runtime/collective/collectives.h"

namespace hvd::rt {

size_t EvenBound(size_t count, int parts, int index) {
  constexpr size_t kGrain = 64;
  if (index == parts) return count;
  const size_t grains = (count + kGrain - 1) / kGrain;
  // floor(grains * index / parts) without the product, which could overflow.
  const size_t begin = grains / parts * index + grains % parts * index / parts;
  return std::min(count, begin * kGrain);
}

std::vector<size_t> EvenSlices(size_t count, int parts) {
  std::vector<size_t> bounds(parts + 1);
  for (int i = 0; i <= parts; ++i) bounds[i] = EvenBound(count, parts, i);
  return bounds;
}

std::pair<size_t, size_t> SumAndLargest(absl::Span<const size_t> sizes) {
  std::pair<size_t, size_t> sum_and_largest{0, 0};
  for (const size_t size : sizes) {
    sum_and_largest.first += size;
    sum_and_largest.second = std::max(sum_and_largest.second, size);
  }
  return sum_and_largest;
}

}  // namespace hvd::rt
