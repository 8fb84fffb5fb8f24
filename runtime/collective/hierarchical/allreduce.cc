// Allreduce over several hosts.
#include <algorithm>
#include <cstring>

#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "runtime/collective/hierarchical/within_host.h"
#include "runtime/collective/message/pipeline.h"

namespace hvd {
absl::Status HierarchicalCollectives::AllreduceOnFirstRail(const ReduceArgs& args,
                                                           const TensorView& view) {
  const size_t bytes = view.count() * view.element_bytes();
  if (bytes == 0) return absl::OkStatus();
  const bool is_packed = view.parts().size() > 1;
  ReduceArgs within = WithinHost(args, size());
  within.parts = {};
  within.input = view.parts()[0].input;
  within.output = view.parts()[0].output;
  within.count = view.count();
  if (is_packed) {
    within.input = within.output = Room(0, bytes);
    view.CopyIn(0, view.count(), Room(0, bytes));
  }
  if (absl::Status summed = host_->Allreduce(within); !summed.ok()) return summed;
  if (leads()) {
    ReduceArgs across = within;
    across.op = args.op;
    across.input = within.output;
    across.prescale = 1.0;
    across.postscale = args.postscale / within.postscale;
    across.divisor = DivisorOf(args, size());
    if (absl::Status crossed = rail_->Allreduce(across); !crossed.ok()) return crossed;
  }
  absl::Status passed = host_->Broadcast({within.output, within.output, bytes, 0});
  if (passed.ok() && is_packed) view.CopyOut(Room(0, bytes), 0, view.count());
  return passed;
}

namespace {

// One chunk of an allreduce on its way through: where it lies in the tensors, and the slice of it
// that this rank takes across.
struct Chunk {
  size_t begin = 0;  // elements
  size_t count = 0;
  std::vector<size_t> bounds;  // by local rank, in the chunk
};

}  // namespace

// A chunk that lies in one tensor is read and written there; one that lies in several is packed.
absl::Status HierarchicalCollectives::AllreduceOnRails(const ReduceArgs& args,
                                                       const TensorView& view) {
  absl::StatusOr<MessageReduce> across = AcrossHosts(args, size());
  if (!across.ok()) return across.status();
  const size_t width = view.element_bytes();
  const Chunks chunks(view.count(), thresholds_.message.chunk_bytes / width);
  const size_t chunk_bytes = chunks.largest() * width;
  const int me = place_.local_rank;
  Chunk ring[PipelineWork::kBuffers];
  const auto chunk_at = [&](size_t k) -> Chunk& { return ring[k % PipelineWork::kBuffers]; };
  const auto slice_room = [&](size_t k) {
    return Room(1 + k % PipelineWork::kBuffers, (chunk_bytes + rails_ - 1) / rails_ + 128 * width);
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
    chunk = {chunks.begin(k), chunks.count(k), RailBounds(chunks.count(k))};
    const TensorView::Piece sole = sole_piece(chunk);
    ReduceArgs within = WithinHost(args, size());
    within.parts = {};
    within.count = chunk.count;
    within.output = slice_room(k);
    if (sole.part != nullptr) {
      within.input = sole.input();
    } else {
      view.CopyIn(chunk.begin, chunk.count, Room(0, chunk_bytes));
      within.input = Room(0, chunk_bytes);
    }
    return host_->ReduceScatter(within, chunk.bounds);
  };
  work.across = [&](size_t k) -> MessageCollectives::Started {
    if (rail_ == nullptr) return nullptr;
    MessageReduce reduce = *across;
    reduce.input = reduce.output = slice_room(k);
    reduce.count = chunk_at(k).bounds[me + 1] - chunk_at(k).bounds[me];
    return rail_->StartAllreduce(reduce, MessageCollectives::Company::kPiped);
  };
  work.after = [&](size_t k) {
    const Chunk& chunk = chunk_at(k);
    std::vector<size_t> slice_bytes(place_.local_size);
    for (int i = 0; i < place_.local_size; ++i) {
      slice_bytes[i] = (chunk.bounds[i + 1] - chunk.bounds[i]) * width;
    }
    const TensorView::Piece sole = sole_piece(chunk);
    std::byte* output = sole.part != nullptr ? sole.output() : Room(0, chunk_bytes);
    absl::Status gathered = host_->Allgather({slice_room(k), output, slice_bytes});
    if (gathered.ok() && sole.part == nullptr) view.CopyOut(output, chunk.begin, chunk.count);
    return gathered;
  };
  return RunPipeline(waiter_, work);
}

}  // namespace hvd
