// SPDX-License-Identifier: Apache-2.0
// The tensors of one reduction as if they lay one after the other: a range of elements of the whole
// is so many pieces of single tensors.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "runtime/collective/collectives.h"

namespace hvd::rt {

class TensorView {
 public:
  // Elements of one tensor.
  struct Piece {
    const ReducePart* part = nullptr;
    size_t offset = 0;  // in the tensor, bytes
    size_t at = 0;      // from the begin of the range, bytes
    size_t count = 0;   // elements

    const std::byte* input() const { return static_cast<const std::byte*>(part->input) + offset; }
    std::byte* output() const { return static_cast<std::byte*>(part->output) + offset; }
  };

  // `args` and its parts must outlive the view.
  explicit TensorView(const ReduceArgs& args);
  TensorView(const TensorView&) = delete;
  TensorView& operator=(const TensorView&) = delete;

  size_t count() const { return ends_.empty() ? whole_.count : ends_.back(); }
  size_t element_bytes() const { return element_bytes_; }
  absl::Span<const ReducePart> parts() const;
  // Whether all tensors lie where all of the host's ranks can reach them.
  bool all_in_shared_memory() const;

  // Calls f(piece) for elements begin to begin + count, in order.
  template <class F>
  void ForEachPiece(size_t begin, size_t count, const F& f) const {
    if (count == 0) return;
    if (ends_.empty()) return f(Piece{&whole_, begin * element_bytes_, 0, count});
    const size_t end = begin + count;
    size_t i = std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin();
    for (size_t from = begin; from < end; ++i) {
      const size_t start = i == 0 ? 0 : ends_[i - 1];
      const size_t to = std::min(end, ends_[i]);
      if (to == from) continue;
      f(Piece{&parts_[i], (from - start) * element_bytes_, (from - begin) * element_bytes_,
              to - from});
      from = to;
    }
  }
  // Elements begin to begin + count of the inputs to `to`; of `from` to the outputs.
  void CopyIn(size_t begin, size_t count, std::byte* to) const;
  void CopyOut(const std::byte* from, size_t begin, size_t count) const;

 private:
  const size_t element_bytes_;
  const ReducePart whole_;  // of a single tensor; then ends_ is empty
  const absl::Span<const ReducePart> parts_;
  absl::InlinedVector<size_t, 32> ends_;  // elements up to and with each part
};

}  // namespace hvd::rt
