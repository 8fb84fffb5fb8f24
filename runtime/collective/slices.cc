#include "runtime/collective/slices.h"

#include <algorithm>

#include "runtime/collective/collectives.h"

namespace hvd {

std::vector<size_t> EvenSlices(size_t count, int parts) {
  constexpr size_t kGrain = 64;
  const size_t grains = (count + kGrain - 1) / kGrain;
  std::vector<size_t> bounds(parts + 1);
  for (int i = 0; i < parts; ++i) {
    // floor(grains * i / parts) without the product, which could overflow.
    const size_t begin = grains / parts * i + grains % parts * i / parts;
    bounds[i] = std::min(count, begin * kGrain);
  }
  bounds[parts] = count;
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

}  // namespace hvd
