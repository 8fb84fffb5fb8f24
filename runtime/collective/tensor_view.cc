// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/tensor_view.h"

#include "runtime/collective/kernels/copy.h"

namespace hvd::rt {

TensorView::TensorView(const ReduceArgs& args)
    : element_bytes_(DtypeBytes(args.dtype)),
      whole_(args.parts.size() == 1 ? args.parts[0]
                                    : ReducePart{args.input, args.output, args.count, {}, {}}),
      parts_(args.parts) {
  if (parts_.size() <= 1) return;
  ends_.reserve(parts_.size());
  size_t end = 0;
  for (const ReducePart& part : parts_) ends_.push_back(end += part.count);
}

absl::Span<const ReducePart> TensorView::parts() const {
  return ends_.empty() ? absl::MakeConstSpan(&whole_, 1) : parts_;
}

bool TensorView::all_in_shared_memory() const {
  return std::all_of(parts().begin(), parts().end(), [](const ReducePart& part) {
    return !part.host_inputs.empty() && !part.host_outputs.empty();
  });
}

void TensorView::CopyIn(size_t begin, size_t count, std::byte* to) const {
  ForEachPiece(begin, count, [&](const Piece& piece) {
    CopyBytes(to + piece.at, piece.input(), piece.count * element_bytes_);
  });
}

void TensorView::CopyOut(const std::byte* from, size_t begin, size_t count) const {
  ForEachPiece(begin, count, [&](const Piece& piece) {
    CopyBytes(piece.output(), from + piece.at, piece.count * element_bytes_);
  });
}

}  // namespace hvd::rt
