// Reduce-scatter over several hosts: each block (what one host's ranks get) is reduced inside every
// host, slice by slice for the rails; along each rail every host gets the sum of its block's slice.
#include <algorithm>

#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "runtime/collective/hierarchical/within_host.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/message/wide_reduction.h"
#include "runtime/collective/slices.h"

namespace hvd {

// Chunk k is the same stretch of every rank's part; with several chunks it is packed. Where all
// hosts have the same number of ranks, a slice is what its rank gets; else a host's ranks join the
// slices of their block and take theirs.
class HierarchicalReduceScatter {
 public:
  HierarchicalReduceScatter(HierarchicalCollectives* group, const ReduceScatterArgs& args,
                            const MessageReduce& across)
      : group_(*group),
        args_(args),
        across_(across),
        width_(across.width),
        even_(group_.topology_.is_homogeneous()),
        chunks_(SumAndLargest(args.count_by_rank).second,
                group_.thresholds_.message.chunk_bytes / width_ / group_.size()) {
    const size_t most = chunks_.largest() * group_.size() * width_;
    group_.Room(kPacked, most);
    for (size_t i = 0; i < PipelineWork::kBuffers; ++i) {
      group_.Room(kSlices + i, most);
      group_.Room(kResults + i, most);
    }
  }

  absl::Status Run() {
    PipelineWork work;
    work.chunks = chunks_.size();
    work.before = [this](size_t k) { return Before(k); };
    work.across = [this](size_t k) { return Across(k); };
    work.after = [this](size_t k) { return After(k); };
    return RunPipeline(group_.waiter_, work);
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
    chunk.blocks = group_.BlockBounds(chunk.counts);
    const int me = group_.place_.local_rank;
    size_t at = 0;
    for (int h = 0; h < group_.hosts(); ++h) {
      std::vector<size_t> bounds = group_.RailBounds(chunk.blocks[h + 1] - chunk.blocks[h]);
      for (int i = 0; even_ && i < group_.place_.local_size; ++i) {
        bounds[i + 1] = bounds[i] + chunk.counts[group_.topology_.first_rank(h) + i];
      }
      const size_t count = bounds[me + 1] - bounds[me];
      chunk.slices.push_back({at, count});
      at += count;
      chunk.rails.push_back(std::move(bounds));
    }
    return chunk;
  }

  std::byte* Slices(size_t k) { return group_.Room(kSlices + k % PipelineWork::kBuffers, 0); }
  // Where this rank's own part of the chunk goes.
  std::byte* OutputAt(size_t k) const {
    const size_t mine = args_.count_by_rank[group_.rank()];
    return static_cast<std::byte*>(args_.output) + std::min(mine, chunks_.begin(k)) * width_;
  }

  const std::byte* Packed(const Chunk& chunk, size_t k) {
    const auto* from = static_cast<const std::byte*>(args_.input);
    if (chunks_.size() == 1) return from;
    std::byte* to = group_.Room(kPacked, 0);
    for (size_t r = 0; r < chunk.counts.size(); ++r) {
      CopyBytes(to, from + std::min(args_.count_by_rank[r], chunks_.begin(k)) * width_,
                chunk.counts[r] * width_);
      to += chunk.counts[r] * width_;
      from += args_.count_by_rank[r] * width_;
    }
    return group_.Room(kPacked, 0);
  }

  absl::Status Before(size_t k) {
    const Chunk chunk = ChunkAt(k);
    const std::byte* input = Packed(chunk, k);
    const ReduceScatterArgs within = WithinHost(args_, group_.size());
    for (int h = 0; h < group_.hosts(); ++h) {
      absl::Status summed = group_.host_->ReduceScatter(
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
    if (group_.rail_ == nullptr) return nullptr;
    Chunk chunk = ChunkAt(k);
    MessageReduce reduce = across_;
    reduce.input = Slices(k);
    reduce.output = even_ ? OutputAt(k) : Results(k);
    reduce.count = chunk.slices.back().begin + chunk.slices.back().count;
    return group_.rail_->StartReduceScatter(reduce, std::move(chunk.slices),
                                            MessageCollectives::Company::kPiped);
  }
  std::byte* Results(size_t k) { return group_.Room(kResults + k % PipelineWork::kBuffers, 0); }

  absl::Status After(size_t k) {
    if (even_) return absl::OkStatus();
    const Chunk chunk = ChunkAt(k);
    const std::vector<size_t>& bounds = chunk.rails[group_.place_.host];
    std::vector<size_t> bytes;
    for (int i = 0; i < group_.place_.local_size; ++i) {
      bytes.push_back((bounds[i + 1] - bounds[i]) * width_);
    }
    std::byte* block = group_.Room(kPacked, 0);
    absl::Status joined = group_.host_->Allgather({Results(k), block, bytes});
    if (!joined.ok()) return joined;
    size_t skipped = 0;
    for (int r = group_.topology_.first_rank(group_.place_.host); r < group_.rank(); ++r) {
      skipped += chunk.counts[r];
    }
    CopyBytes(OutputAt(k), block + skipped * width_, chunk.counts[group_.rank()] * width_);
    return absl::OkStatus();
  }

  HierarchicalCollectives& group_;
  const ReduceScatterArgs& args_;
  const MessageReduce across_;
  const size_t width_;
  const bool even_;
  const Chunks chunks_;
};

absl::Status HierarchicalCollectives::ReduceScatter(const ReduceScatterArgs& args) {
  if (hosts() == 1) return host_->ReduceScatter(args);
  if (TravelsWide(args.op, args.dtype)) return ReduceWide(args, this);
  if (flat()) return rail_->ReduceScatter(args);
  absl::StatusOr<MessageReduce> across = AcrossHosts(args, size());
  if (!across.ok()) return across.status();
  if (SumAndLargest(args.count_by_rank).first == 0) return absl::OkStatus();
  return HierarchicalReduceScatter(this, args, *across).Run();
}

}  // namespace hvd
