// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/host_reduce.h"

#include <algorithm>

namespace hvd::rt {

size_t HostReduce::largest_slice() const {
  size_t largest = 0;
  for (size_t r = 0; r + 1 < bounds.size(); ++r) {
    largest = std::max(largest, bounds[r + 1] - bounds[r]);
  }
  return largest;
}

HostReduce::Range HostReduce::Piece(int owner, uint64_t round, size_t piece) const {
  const size_t end = bounds[owner + 1];
  const size_t begin = std::min(end, bounds[owner] + round * piece);
  return {begin, std::min(piece, end - begin)};
}

void HostReduce::Combine(absl::Span<const void* const> sources,
                         absl::Span<void* const> destinations, size_t count) const {
  ReduceTask task = scales;
  task.sources = sources.data();
  task.source_count = static_cast<int>(sources.size());
  task.destinations = destinations.data();
  task.destination_count = static_cast<int>(destinations.size());
  task.count = count;
  kernel(task);
}

}  // namespace hvd::rt
