// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/hierarchical/allreduce.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/hierarchical/within_host.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/tensor_view.h"

namespace hvd::rt {
namespace {

absl::Status AllreduceOnFirstRail(Rails& rails, const ReduceArgs& args, const TensorView& view) {
  const size_t bytes = view.count() * view.element_bytes();
  if (bytes == 0) return absl::OkStatus();
  const bool is_packed = view.parts().size() > 1;
  ReduceArgs within = WithinHost(args, rails.size());
  within.parts = {};
  within.input = view.parts()[0].input;
  within.output = view.parts()[0].output;
  within.count = view.count();
  if (is_packed) {
    within.input = within.output = rails.Room(0, bytes);
    view.CopyIn(0, view.count(), rails.Room(0, bytes));
  }
  if (absl::Status summed = rails.host().Allreduce(within); !summed.ok()) return summed;
  if (rails.leads()) {
    ReduceArgs across = within;
    across.op = args.op;
    across.input = within.output;
    across.prescale = 1.0;
    across.postscale = args.postscale / within.postscale;
    across.divisor = DivisorOf(args, rails.size());
    if (absl::Status crossed = rails.rail().Allreduce(across); !crossed.ok()) return crossed;
  }
  absl::Status passed = rails.host().Broadcast({within.output, within.output, bytes, 0});
  if (passed.ok() && is_packed) view.CopyOut(rails.Room(0, bytes), 0, view.count());
  return passed;
}

// The allreduce in chunks. A chunk that lies in one tensor is read and written there; one that lies
// in several is packed.
class AllreduceOnRails {
 public:
  AllreduceOnRails(Rails* rails, const ReduceArgs& args, const MessageReduce& across)
      : rails_(*rails),
        args_(args),
        across_(across),
        view_(args),
        width_(view_.element_bytes()),
        chunks_(view_.count(), rails->chunk_bytes() / width_),
        chunk_bytes_(chunks_.largest() * width_) {}

  absl::Status Run() {
    PipelineWork work;
    work.chunks = chunks_.size();
    work.before = [this](size_t k) { return Before(k); };
    work.across = [this](size_t k) { return Across(k); };
    work.after = [this](size_t k) { return After(k); };
    return RunPipeline(rails_.waiter(), work);
  }

 private:
  // By local rank, in the chunk: the slices of it that the rails take across.
  std::vector<size_t> Bounds(size_t k) const { return rails_.Bounds(chunks_.count(k)); }
  // Where this rank's slice of the chunk lies.
  std::byte* Slice(size_t k) {
    return rails_.Room(1 + k % PipelineWork::kBuffers,
                       (chunk_bytes_ + rails_.count() - 1) / rails_.count() + 128 * width_);
  }
  std::byte* Packed() { return rails_.Room(0, chunk_bytes_); }
  // The chunk, if one tensor has all of it; else of no part.
  TensorView::Piece SolePiece(size_t k) const {
    TensorView::Piece sole;
    const size_t count = chunks_.count(k);
    view_.ForEachPiece(chunks_.begin(k), count, [&](const TensorView::Piece& piece) {
      if (piece.count == count) sole = piece;
    });
    return sole;
  }

  absl::Status Before(size_t k) {
    ReduceArgs within = WithinHost(args_, rails_.size());
    within.parts = {};
    within.count = chunks_.count(k);
    within.output = Slice(k);
    const TensorView::Piece sole = SolePiece(k);
    if (sole.part != nullptr) {
      within.input = sole.input();
    } else {
      view_.CopyIn(chunks_.begin(k), chunks_.count(k), Packed());
      within.input = Packed();
    }
    return rails_.host().ReduceScatter(within, Bounds(k));
  }

  MessageCollectives::Started Across(size_t k) {
    if (!rails_.on_rail()) return nullptr;
    const std::vector<size_t> bounds = Bounds(k);
    const int me = rails_.place().local_rank;
    MessageReduce reduce = across_;
    reduce.input = reduce.output = Slice(k);
    reduce.count = bounds[me + 1] - bounds[me];
    return rails_.rail().StartAllreduce(reduce, MessageCollectives::Company::kPiped);
  }

  absl::Status After(size_t k) {
    const std::vector<size_t> bounds = Bounds(k);
    std::vector<size_t> slice_bytes(rails_.place().local_size);
    for (size_t i = 0; i < slice_bytes.size(); ++i) {
      slice_bytes[i] = (bounds[i + 1] - bounds[i]) * width_;
    }
    const TensorView::Piece sole = SolePiece(k);
    std::byte* output = sole.part != nullptr ? sole.output() : Packed();
    absl::Status gathered = rails_.host().Allgather({Slice(k), output, slice_bytes});
    if (gathered.ok() && sole.part == nullptr) {
      view_.CopyOut(output, chunks_.begin(k), chunks_.count(k));
    }
    return gathered;
  }

  Rails& rails_;
  const ReduceArgs& args_;
  const MessageReduce across_;
  const TensorView view_;
  const size_t width_;  // of an element
  const Chunks chunks_;
  const size_t chunk_bytes_;  // of the largest
};

}  // namespace

absl::Status AllreduceAcross(Rails& rails, const ReduceArgs& args) {
  if (const auto known = ReductionOf(args, rails.size()); !known.ok()) return known.status();
  const TensorView view(args);
  if (rails.flat() && view.parts().size() == 1) return rails.rail().Allreduce(args);
  const size_t bytes = view.count() * view.element_bytes();
  if (bytes < rails.thresholds().rails_bytes) return AllreduceOnFirstRail(rails, args, view);
  const absl::StatusOr<MessageReduce> across = AcrossHosts(args, rails.size());
  if (!across.ok()) return across.status();
  return AllreduceOnRails(&rails, args, *across).Run();
}

}  // namespace hvd::rt
