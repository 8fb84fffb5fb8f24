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

size_t DtypeBytes(hvd_dtype_t dtype) {
  switch (dtype) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_BOOL:
      return 1;
    case HVD_INT16:
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
      return 2;
    case HVD_INT32:
    case HVD_FLOAT32:
      return 4;
    case HVD_INT64:
    case HVD_FLOAT64:
      return 8;
  }
  return 0;
}

}  // namespace hvd
