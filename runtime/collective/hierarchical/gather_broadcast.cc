// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/hierarchical/gather_broadcast.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/slices.h"

namespace hvd::rt {
namespace {

// Each host gathers its own block in place, the first rail exchanges the blocks, and each host
// passes on what lies before and after its own.
absl::Status AllgatherOnFirstRail(Rails& rails, const GatherArgs& args) {
  auto* output = static_cast<std::byte*>(args.output);
  const std::vector<size_t> blocks = rails.BlockBounds(args.bytes_by_rank);
  const size_t before = blocks[rails.place().host];
  const size_t end = blocks[rails.place().host + 1];
  absl::Status done = rails.host().Allgather(
      {.input = args.input,
       .output = output + before,
       .bytes_by_rank = args.bytes_by_rank.subspan(rails.topology().rank_at(rails.place().host, 0),
                                                   rails.place().local_size)});
  if (!done.ok()) return done;
  if (rails.leads()) {
    std::vector<size_t> block_bytes;
    block_bytes.reserve(rails.hosts());
    for (int h = 0; h < rails.hosts(); ++h) block_bytes.push_back(blocks[h + 1] - blocks[h]);
    done = rails.rail().Allgather(
        {.input = output + before, .output = output, .bytes_by_rank = block_bytes});
    if (!done.ok()) return done;
  }
  done = rails.host().Broadcast({output, output, before, 0});
  if (!done.ok()) return done;
  return rails.host().Broadcast({output + end, output + end, blocks.back() - end, 0});
}

// The allgather in chunks. Chunk k is the same stretch of every host's block. A host gathers its
// own, the rails carry a slice each of all, and the hosts join the slices of the others' blocks.
class AllgatherOnRails {
 public:
  AllgatherOnRails(Rails* rails, const GatherArgs& args)
      : rails_(*rails),
        args_(args),
        output_(static_cast<std::byte*>(args.output)),
        blocks_(rails->BlockBounds(args.bytes_by_rank)),
        chunks_(LargestBlock(), rails->chunk_bytes() / rails->hosts()) {}

  absl::Status Run() {
    PipelineWork work;
    work.chunks = chunks_.size();
    work.before = [this](size_t k) { return Before(k); };
    work.across = [this](size_t k) { return Across(k); };
    work.after = [this](size_t k) { return After(k); };
    return RunPipeline(rails_.waiter(), work);
  }

 private:
  size_t LargestBlock() const {
    size_t largest = 0;
    for (size_t h = 0; h + 1 < blocks_.size(); ++h) {
      largest = std::max(largest, blocks_[h + 1] - blocks_[h]);
    }
    return largest;
  }
  // Chunk k of a host's block; may be empty.
  Extent Stretch(int h, size_t k) const {
    const size_t begin = std::min(blocks_[h + 1], blocks_[h] + chunks_.begin(k));
    return {begin, std::min(blocks_[h + 1], blocks_[h] + chunks_.begin(k + 1)) - begin};
  }

  absl::Status Before(size_t k) {
    const RankPlace& place = rails_.place();
    const Extent mine = Stretch(place.host, k);
    std::vector<size_t> bytes;
    const auto* input = static_cast<const std::byte*>(args_.input);
    size_t at = blocks_[place.host];
    for (int i = 0; i < place.local_size; ++i) {
      const size_t end = at + args_.bytes_by_rank[rails_.topology().rank_at(place.host, 0) + i];
      const size_t from = std::clamp(mine.begin, at, end);
      bytes.push_back(std::clamp(mine.begin + mine.count, at, end) - from);
      if (i == place.local_rank) input += from - at;
      at = end;
    }
    return rails_.host().Allgather({input, output_ + mine.begin, bytes});
  }

  MessageCollectives::Started Across(size_t k) {
    if (!rails_.on_rail()) return nullptr;
    const int me = rails_.place().local_rank;
    std::vector<Extent> slices;
    for (int h = 0; h < rails_.hosts(); ++h) {
      const Extent whole = Stretch(h, k);
      const std::vector<size_t> bounds = rails_.Bounds(whole.count);
      slices.push_back({whole.begin + bounds[me], bounds[me + 1] - bounds[me]});
    }
    return rails_.rail().StartAllgather(output_, std::move(slices),
                                        MessageCollectives::Company::kPiped);
  }

  absl::Status After(size_t k) {
    for (int h = 0; h < rails_.hosts(); ++h) {
      if (h == rails_.place().host) continue;
      const Extent whole = Stretch(h, k);
      absl::Status joined = rails_.Join(output_ + whole.begin, whole.count);
      if (!joined.ok()) return joined;
    }
    return absl::OkStatus();
  }

  Rails& rails_;
  const GatherArgs& args_;
  std::byte* const output_;
  const std::vector<size_t> blocks_;  // bounds by host
  const Chunks chunks_;
};

// Along the root's own rail if it has one; else its host hears first and the first rail carries on.
absl::Status BroadcastOnOneRail(Rails& rails, const BroadcastArgs& args) {
  const RankPlace& root = rails.topology().place(args.root);
  const bool root_has_rail = root.local_rank < rails.count();
  const int rail = root_has_rail ? root.local_rank : 0;
  const bool is_roots_host = rails.place().host == root.host;
  const bool is_root = rails.place().rank == args.root;
  const BroadcastArgs on_roots_host{args.input, args.output, args.bytes, root.local_rank};
  if (is_roots_host && !root_has_rail) {
    if (absl::Status heard = rails.host().Broadcast(on_roots_host); !heard.ok()) return heard;
  }
  if (rails.place().local_rank == rail && rails.on_rail()) {
    const void* source = is_root ? args.input : args.output;
    absl::Status crossed = rails.rail().Broadcast({source, args.output, args.bytes, root.host});
    if (!crossed.ok()) return crossed;
  }
  if (is_roots_host)
    return root_has_rail ? rails.host().Broadcast(on_roots_host) : absl::OkStatus();
  return rails.host().Broadcast({args.output, args.output, args.bytes, rail});
}

// The root's host hears a chunk, its rails carry a slice each to the other hosts, and those join
// them.
absl::Status BroadcastOnRails(Rails& rails, const BroadcastArgs& args) {
  const RankPlace& root = rails.topology().place(args.root);
  const bool is_roots_host = rails.place().host == root.host;
  const auto* input = static_cast<const std::byte*>(args.input);
  auto* output = static_cast<std::byte*>(args.output);
  const Chunks chunks(args.bytes, rails.chunk_bytes());

  PipelineWork work;
  work.chunks = chunks.size();
  work.before = [&](size_t k) {
    if (!is_roots_host) return absl::OkStatus();
    const void* source = rails.place().rank == args.root ? input + chunks.begin(k) : nullptr;
    return rails.host().Broadcast(
        {source, output + chunks.begin(k), chunks.count(k), root.local_rank});
  };
  work.across = [&](size_t k) -> MessageCollectives::Started {
    if (!rails.on_rail()) return nullptr;
    const std::vector<size_t> bounds = rails.Bounds(chunks.count(k));
    std::byte* slice = output + chunks.begin(k) + bounds[rails.place().local_rank];
    const size_t bytes = bounds[rails.place().local_rank + 1] - bounds[rails.place().local_rank];
    return rails.rail().StartBroadcast({slice, slice, bytes, root.host});
  };
  work.after = [&](size_t k) {
    if (is_roots_host) return absl::OkStatus();
    return rails.Join(output + chunks.begin(k), chunks.count(k));
  };
  return RunPipeline(rails.waiter(), work);
}

}  // namespace

absl::Status AllgatherAcross(Rails& rails, const GatherArgs& args) {
  if (rails.flat()) return rails.rail().Allgather(args);
  return SumAndLargest(args.bytes_by_rank).first < rails.thresholds().rails_bytes
             ? AllgatherOnFirstRail(rails, args)
             : AllgatherOnRails(&rails, args).Run();
}

absl::Status BroadcastAcross(Rails& rails, const BroadcastArgs& args) {
  if (rails.flat()) return rails.rail().Broadcast(args);
  return args.bytes < rails.thresholds().rails_bytes ? BroadcastOnOneRail(rails, args)
                                                     : BroadcastOnRails(rails, args);
}

// Pairs on different hosts exchange directly, meanwhile those of one host do among themselves.
absl::Status AlltoallAcross(Rails& rails, const AlltoallArgs& args) {
  if (rails.flat()) return rails.rail().Alltoall(args);
  const int first = rails.topology().rank_at(rails.place().host, 0);
  std::vector<int> others;
  for (int rank = 0; rank < rails.size(); ++rank) {
    if (rails.topology().place(rank).host != rails.place().host) others.push_back(rank);
  }
  auto across = rails.everyone().StartAlltoall(args, others);
  if (!across.ok()) return across.status();
  const InBackground stepped(rails.waiter(), across->get());
  const auto before = [first](absl::Span<const size_t> bytes) {
    return std::accumulate(bytes.begin(), bytes.begin() + first, size_t{0});
  };
  absl::Status exchanged = rails.host().Alltoall(
      {.input = static_cast<const std::byte*>(args.input) + before(args.send_bytes),
       .output = static_cast<std::byte*>(args.output) + before(args.receive_bytes),
       .send_bytes = args.send_bytes.subspan(first, rails.place().local_size),
       .receive_bytes = args.receive_bytes.subspan(first, rails.place().local_size)});
  if (!exchanged.ok()) return exchanged;
  return Finish(rails.waiter(), across->get());
}

}  // namespace hvd::rt
