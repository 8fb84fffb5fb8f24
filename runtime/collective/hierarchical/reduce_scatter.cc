// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/hierarchical/reduce_scatter.h"

#include <algorithm>
#include <utility>

#include "runtime/collective/hierarchical/within_host.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/slices.h"

namespace hvd::rt {
namespace {

// Chunk k is the same stretch of every rank's part; with several chunks it is packed. Where all
// hosts have the same number of ranks, a slice is what its rank gets; else a host's ranks join the
// slices of their block and take theirs.
class ReduceScatterOnRails {
 public:
  ReduceScatterOnRails(Rails* rails, const ReduceScatterArgs& args, const MessageReduce& across)
      : rails_(*rails),
        args_(args),
        across_(across),
        width_(across.width),
        even_(rails_.topology().is_homogeneous()),
        chunks_(SumAndLargest(args.count_by_rank).second,
                rails_.chunk_bytes() / width_ / rails_.size()) {
    const size_t most = chunks_.largest() * rails_.size() * width_;
    rails_.Room(kPacked, most);
    for (size_t i = 0; i < PipelineWork::kBuffers; ++i) {
      rails_.Room(kSlices + i, most);
      rails_.Room(kResults + i, most);
    }
  }

  absl::Status Run() {
    PipelineWork work;
    work.chunks = chunks_.size();
    work.before = [this](size_t k) { return Before(k); };
    work.across = [this](size_t k) { return Across(k); };
    work.after = [this](size_t k) { return After(k); };
    return RunPipeline(rails_.waiter(), work);
  }

 private:
  // Rooms, in the order of their numbers.
  static constexpr size_t kPacked = 0;
  static constexpr size_t kSlices = 1;
  static constexpr size_t kResults = kSlices + PipelineWork::kBuffers;

  struct Chunk {
    std::vector<size_t> counts;              // by rank
    std::vector<size_t> blocks;              // bounds by host
    std::vector<std::vector<size_t>> rails;  // by host: bounds of its block by local rank here
    std::vector<Extent> slices;              // by host: this rank's, in its room
  };

  Chunk ChunkAt(size_t k) const {
    Chunk chunk;
    for (const size_t count : args_.count_by_rank) {
      chunk.counts.push_back(std::min(count, chunks_.begin(k + 1)) -
                             std::min(count, chunks_.begin(k)));
    }
    chunk.blocks = rails_.BlockBounds(chunk.counts);
    const int me = rails_.place().local_rank;
    size_t at = 0;
    for (int h = 0; h < rails_.hosts(); ++h) {
      std::vector<size_t> bounds = rails_.Bounds(chunk.blocks[h + 1] - chunk.blocks[h]);
      for (int i = 0; even_ && i < rails_.place().local_size; ++i) {
        bounds[i + 1] = bounds[i] + chunk.counts[rails_.topology().rank_at(h, 0) + i];
      }
      const size_t count = bounds[me + 1] - bounds[me];
      chunk.slices.push_back({at, count});
      at += count;
      chunk.rails.push_back(std::move(bounds));
    }
    return chunk;
  }

  std::byte* Slices(size_t k) { return rails_.Room(kSlices + k % PipelineWork::kBuffers, 0); }
  // Where this rank's own part of the chunk goes.
  std::byte* OutputAt(size_t k) const {
    const size_t mine = args_.count_by_rank[rails_.place().rank];
    return static_cast<std::byte*>(args_.output) + std::min(mine, chunks_.begin(k)) * width_;
  }

  const std::byte* Packed(const Chunk& chunk, size_t k) {
    const auto* from = static_cast<const std::byte*>(args_.input);
    if (chunks_.size() == 1) return from;
    std::byte* to = rails_.Room(kPacked, 0);
    for (size_t r = 0; r < chunk.counts.size(); ++r) {
      CopyBytes(to, from + std::min(args_.count_by_rank[r], chunks_.begin(k)) * width_,
                chunk.counts[r] * width_);
      to += chunk.counts[r] * width_;
      from += args_.count_by_rank[r] * width_;
    }
    return rails_.Room(kPacked, 0);
  }

  absl::Status Before(size_t k) {
    const Chunk chunk = ChunkAt(k);
    const std::byte* input = Packed(chunk, k);
    const ReduceScatterArgs within = WithinHost(args_, rails_.size());
    for (int h = 0; h < rails_.hosts(); ++h) {
      absl::Status summed = rails_.host().ReduceScatter(
          ReduceArgs{.input = input + chunk.blocks[h] * width_,
                     .output = Slices(k) + chunk.slices[h].begin * width_,
                     .count = chunk.blocks[h + 1] - chunk.blocks[h],
                     .dtype = within.dtype,
                     .op = within.op,
                     .prescale = within.prescale,
                     .postscale = within.postscale},
          chunk.rails[h]);
      if (!summed.ok()) return summed;
    }
    return absl::OkStatus();
  }

  MessageCollectives::Started Across(size_t k) {
    if (!rails_.on_rail()) return nullptr;
    Chunk chunk = ChunkAt(k);
    MessageReduce reduce = across_;
    reduce.input = Slices(k);
    reduce.output = even_ ? OutputAt(k) : Results(k);
    reduce.count = chunk.slices.back().begin + chunk.slices.back().count;
    return rails_.rail().StartReduceScatter(reduce, std::move(chunk.slices),
                                            MessageCollectives::Company::kPiped);
  }
  std::byte* Results(size_t k) { return rails_.Room(kResults + k % PipelineWork::kBuffers, 0); }

  absl::Status After(size_t k) {
    if (even_) return absl::OkStatus();
    const Chunk chunk = ChunkAt(k);
    const std::vector<size_t>& bounds = chunk.rails[rails_.place().host];
    std::vector<size_t> bytes;
    for (int i = 0; i < rails_.place().local_size; ++i) {
      bytes.push_back((bounds[i + 1] - bounds[i]) * width_);
    }
    std::byte* block = rails_.Room(kPacked, 0);
    absl::Status joined = rails_.host().Allgather({Results(k), block, bytes});
    if (!joined.ok()) return joined;
    size_t skipped = 0;
    for (int r = rails_.topology().rank_at(rails_.place().host, 0); r < rails_.place().rank; ++r) {
      skipped += chunk.counts[r];
    }
    CopyBytes(OutputAt(k), block + skipped * width_, chunk.counts[rails_.place().rank] * width_);
    return absl::OkStatus();
  }

  Rails& rails_;
  const ReduceScatterArgs& args_;
  const MessageReduce across_;
  const size_t width_;
  const bool even_;
  const Chunks chunks_;
};

}  // namespace

absl::Status ReduceScatterAcross(Rails& rails, const ReduceScatterArgs& args) {
  if (rails.flat()) return rails.rail().ReduceScatter(args);
  absl::StatusOr<MessageReduce> across = AcrossHosts(args, rails.size());
  if (!across.ok()) return across.status();
  if (SumAndLargest(args.count_by_rank).first == 0) return absl::OkStatus();
  return ReduceScatterOnRails(&rails, args, *across).Run();
}

}  // namespace hvd::rt
