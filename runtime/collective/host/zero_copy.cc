// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/zero_copy.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace hvd::rt {
namespace {

// Between two looks at the epoch: when it ends, a rank soon leaves its peers' buffers alone.
constexpr size_t kUncheckedBytes = size_t{1} << 20;

}  // namespace

absl::Status SumSlice(const HostGroup& group, const HostReduce& reduce, size_t begin, size_t end) {
  absl::InlinedVector<const void*, 16> sources(group.size());
  absl::InlinedVector<void*, 16> destinations(group.size());
  const size_t step = kUncheckedBytes / reduce.tensors.element_bytes();
  for (; begin < end; begin += step) {
    if (absl::Status alive = group.Check(); !alive.ok()) return alive;
    reduce.tensors.ForEachPiece(
        begin, std::min(step, end - begin), [&](const TensorView::Piece& piece) {
          for (int peer = 0; peer < group.size(); ++peer) {
            sources[peer] =
                static_cast<const std::byte*>(piece.part->host_inputs[peer]) + piece.offset;
            destinations[peer] =
                static_cast<std::byte*>(piece.part->host_outputs[peer]) + piece.offset;
          }
          reduce.Combine(sources, destinations, piece.count);
        });
  }
  return absl::OkStatus();
}

// All have handed their buffers over before any comes here, so there is no meeting at the start:
// only at the end, when nobody reads or writes another's buffers any more.
absl::Status ZeroCopyReduce(HostGroup& group, const HostReduce& reduce) {
  if (absl::Status begun = group.Begin(); !begun.ok()) return begun;
  const size_t begin = reduce.bounds[group.rank()], end = reduce.bounds[group.rank() + 1];
  if (absl::Status summed = SumSlice(group, reduce, begin, end); !summed.ok()) return summed;
  group.Arrive({});
  return group.AwaitArrivals();
}

}  // namespace hvd::rt
