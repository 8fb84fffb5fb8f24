#include "runtime/collective/hierarchical/allreduce.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/hierarchical/within_host.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/tensor_view.h"

namespace hvd {
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

// One chunk of an allreduce on its way through: where it lies in the tensors, and the slice of it
// that this rank takes across.
struct Chunk {
  size_t begin = 0;  // elements
  size_t count = 0;
  std::vector<size_t> bounds;  // by local rank, in the chunk
};

// A chunk that lies in one tensor is read and written there; one that lies in several is packed.
absl::Status AllreduceOnRails(Rails& rails, const ReduceArgs& args, const TensorView& view) {
  absl::StatusOr<MessageReduce> across = AcrossHosts(args, rails.size());
  if (!across.ok()) return across.status();
  const size_t width = view.element_bytes();
  const Chunks chunks(view.count(), rails.chunk_bytes() / width);
  const size_t chunk_bytes = chunks.largest() * width;
  const int me = rails.place().local_rank;
  Chunk ring[PipelineWork::kBuffers];
  const auto chunk_at = [&](size_t k) -> Chunk& { return ring[k % PipelineWork::kBuffers]; };
  const auto slice_room = [&](size_t k) {
    return rails.Room(1 + k % PipelineWork::kBuffers,
                      (chunk_bytes + rails.count() - 1) / rails.count() + 128 * width);
  };
  const auto sole_piece = [&](const Chunk& chunk) {
    TensorView::Piece sole;
    view.ForEachPiece(chunk.begin, chunk.count, [&](const TensorView::Piece& piece) {
      if (piece.count == chunk.count) sole = piece;
    });
    return sole;
  };

  PipelineWork work;
  work.chunks = chunks.size();
  work.before = [&](size_t k) {
    Chunk& chunk = chunk_at(k);
    chunk = {chunks.begin(k), chunks.count(k), rails.Bounds(chunks.count(k))};
    const TensorView::Piece sole = sole_piece(chunk);
    ReduceArgs within = WithinHost(args, rails.size());
    within.parts = {};
    within.count = chunk.count;
    within.output = slice_room(k);
    if (sole.part != nullptr) {
      within.input = sole.input();
    } else {
      view.CopyIn(chunk.begin, chunk.count, rails.Room(0, chunk_bytes));
      within.input = rails.Room(0, chunk_bytes);
    }
    return rails.host().ReduceScatter(within, chunk.bounds);
  };
  work.across = [&](size_t k) -> MessageCollectives::Started {
    if (!rails.on_rail()) return nullptr;
    MessageReduce reduce = *across;
    reduce.input = reduce.output = slice_room(k);
    reduce.count = chunk_at(k).bounds[me + 1] - chunk_at(k).bounds[me];
    return rails.rail().StartAllreduce(reduce, MessageCollectives::Company::kPiped);
  };
  work.after = [&](size_t k) {
    const Chunk& chunk = chunk_at(k);
    std::vector<size_t> slice_bytes(rails.place().local_size);
    for (int i = 0; i < rails.place().local_size; ++i) {
      slice_bytes[i] = (chunk.bounds[i + 1] - chunk.bounds[i]) * width;
    }
    const TensorView::Piece sole = sole_piece(chunk);
    std::byte* output = sole.part != nullptr ? sole.output() : rails.Room(0, chunk_bytes);
    absl::Status gathered = rails.host().Allgather({slice_room(k), output, slice_bytes});
    if (gathered.ok() && sole.part == nullptr) view.CopyOut(output, chunk.begin, chunk.count);
    return gathered;
  };
  return RunPipeline(rails.waiter(), work);
}

}  // namespace

absl::Status AllreduceAcross(Rails& rails, const ReduceArgs& args) {
  if (const auto known = ReductionOf(args, rails.size()); !known.ok()) return known.status();
  const TensorView view(args);
  if (rails.flat() && view.parts().size() == 1) return rails.rail().Allreduce(args);
  const size_t bytes = view.count() * view.element_bytes();
  return bytes < rails.thresholds().rails_bytes ? AllreduceOnFirstRail(rails, args, view)
                                                : AllreduceOnRails(rails, args, view);
}

}  // namespace hvd
