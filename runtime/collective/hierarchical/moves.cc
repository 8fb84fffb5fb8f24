// Allgather, broadcast and alltoall over several hosts.
#include <algorithm>
#include <numeric>

#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/slices.h"

namespace hvd {

absl::Status HierarchicalCollectives::JoinRails(std::byte* data, size_t bytes) {
  const std::vector<size_t> bounds = RailBounds(bytes);
  std::vector<size_t> slices;
  for (int i = 0; i < place_.local_size; ++i) slices.push_back(bounds[i + 1] - bounds[i]);
  return host_->Allgather({data + bounds[place_.local_rank], data, slices});
}

absl::Status HierarchicalCollectives::Allgather(const GatherArgs& args) {
  if (hosts() == 1) return host_->Allgather(args);
  if (flat()) return rail_->Allgather(args);
  return SumAndLargest(args.bytes_by_rank).first < thresholds_.rails_bytes
             ? AllgatherOnFirstRail(args)
             : AllgatherOnRails(args);
}

// Each host gathers its own block in place, the first rail exchanges the blocks, and each host
// passes on what lies before and after its own.
absl::Status HierarchicalCollectives::AllgatherOnFirstRail(const GatherArgs& args) {
  auto* output = static_cast<std::byte*>(args.output);
  const std::vector<size_t> blocks = BlockBounds(args.bytes_by_rank);
  const size_t before = blocks[place_.host];
  const size_t end = blocks[place_.host + 1];
  absl::Status done = host_->Allgather({.input = args.input,
                                        .output = output + before,
                                        .bytes_by_rank = args.bytes_by_rank.subspan(
                                            topology_.first_rank(place_.host), place_.local_size)});
  if (!done.ok()) return done;
  if (leads()) {
    std::vector<size_t> block_bytes;
    for (int h = 0; h < hosts(); ++h) block_bytes.push_back(blocks[h + 1] - blocks[h]);
    done = rail_->Allgather(
        {.input = output + before, .output = output, .bytes_by_rank = block_bytes});
    if (!done.ok()) return done;
  }
  done = host_->Broadcast({output, output, before, 0});
  if (!done.ok()) return done;
  return host_->Broadcast({output + end, output + end, blocks.back() - end, 0});
}

// Chunk k is the same stretch of every host's block. A host gathers its own, the rails carry a
// slice each of all, and the hosts join the slices of the others' blocks.
absl::Status HierarchicalCollectives::AllgatherOnRails(const GatherArgs& args) {
  auto* output = static_cast<std::byte*>(args.output);
  const std::vector<size_t> blocks = BlockBounds(args.bytes_by_rank);
  size_t largest = 0;
  for (int h = 0; h < hosts(); ++h) largest = std::max(largest, blocks[h + 1] - blocks[h]);
  const Chunks chunks(largest, thresholds_.message.chunk_bytes / hosts());
  const auto stretch = [&](int h, size_t k) {
    const size_t begin = std::min(blocks[h + 1], blocks[h] + chunks.begin(k));
    return Extent{begin, std::min(blocks[h + 1], blocks[h] + chunks.begin(k + 1)) - begin};
  };

  PipelineWork work;
  work.chunks = chunks.size();
  work.before = [&](size_t k) {
    const Extent mine = stretch(place_.host, k);
    std::vector<size_t> bytes;
    const auto* input = static_cast<const std::byte*>(args.input);
    size_t at = blocks[place_.host];
    for (int i = 0; i < place_.local_size; ++i) {
      const size_t end = at + args.bytes_by_rank[topology_.first_rank(place_.host) + i];
      const size_t from = std::clamp(mine.begin, at, end);
      bytes.push_back(std::clamp(mine.begin + mine.count, at, end) - from);
      if (i == place_.local_rank) input += from - at;
      at = end;
    }
    return host_->Allgather({input, output + mine.begin, bytes});
  };
  work.across = [&](size_t k) -> MessageCollectives::Started {
    if (rail_ == nullptr) return nullptr;
    std::vector<Extent> slices;
    for (int h = 0; h < hosts(); ++h) {
      const Extent whole = stretch(h, k);
      const std::vector<size_t> bounds = RailBounds(whole.count);
      const int me = place_.local_rank;
      slices.push_back({whole.begin + bounds[me], bounds[me + 1] - bounds[me]});
    }
    return rail_->StartAllgather(output, std::move(slices), MessageCollectives::Company::kPiped);
  };
  work.after = [&](size_t k) {
    for (int h = 0; h < hosts(); ++h) {
      if (h == place_.host) continue;
      const Extent whole = stretch(h, k);
      absl::Status joined = JoinRails(output + whole.begin, whole.count);
      if (!joined.ok()) return joined;
    }
    return absl::OkStatus();
  };
  return RunPipeline(waiter_, work);
}

absl::Status HierarchicalCollectives::Broadcast(const BroadcastArgs& args) {
  if (hosts() == 1) return host_->Broadcast(args);
  if (flat()) return rail_->Broadcast(args);
  return args.bytes < thresholds_.rails_bytes ? BroadcastOnOneRail(args) : BroadcastOnRails(args);
}

// Along the root's own rail if it has one; else its host hears first and the first rail carries on.
absl::Status HierarchicalCollectives::BroadcastOnOneRail(const BroadcastArgs& args) {
  const RankPlace& root = topology_.place(args.root);
  const bool root_has_rail = root.local_rank < rails_;
  const int rail = root_has_rail ? root.local_rank : 0;
  const bool is_roots_host = place_.host == root.host;
  const bool is_root = place_.rank == args.root;
  const BroadcastArgs on_roots_host{args.input, args.output, args.bytes, root.local_rank};
  if (is_roots_host && !root_has_rail) {
    if (absl::Status heard = host_->Broadcast(on_roots_host); !heard.ok()) return heard;
  }
  if (place_.local_rank == rail && rail_ != nullptr) {
    const void* source = is_root ? args.input : args.output;
    absl::Status crossed = rail_->Broadcast({source, args.output, args.bytes, root.host});
    if (!crossed.ok()) return crossed;
  }
  if (is_roots_host) return root_has_rail ? host_->Broadcast(on_roots_host) : absl::OkStatus();
  return host_->Broadcast({args.output, args.output, args.bytes, rail});
}

// The root's host hears a chunk, its rails carry a slice each to the other hosts, and those join
// them.
absl::Status HierarchicalCollectives::BroadcastOnRails(const BroadcastArgs& args) {
  const RankPlace& root = topology_.place(args.root);
  const bool is_roots_host = place_.host == root.host;
  const auto* input = static_cast<const std::byte*>(args.input);
  auto* output = static_cast<std::byte*>(args.output);
  const Chunks chunks(args.bytes, thresholds_.message.chunk_bytes);

  PipelineWork work;
  work.chunks = chunks.size();
  work.before = [&](size_t k) {
    if (!is_roots_host) return absl::OkStatus();
    const void* source = place_.rank == args.root ? input + chunks.begin(k) : nullptr;
    return host_->Broadcast({source, output + chunks.begin(k), chunks.count(k), root.local_rank});
  };
  work.across = [&](size_t k) -> MessageCollectives::Started {
    if (rail_ == nullptr) return nullptr;
    const std::vector<size_t> bounds = RailBounds(chunks.count(k));
    std::byte* slice = output + chunks.begin(k) + bounds[place_.local_rank];
    const size_t bytes = bounds[place_.local_rank + 1] - bounds[place_.local_rank];
    return rail_->StartBroadcast({slice, slice, bytes, root.host});
  };
  work.after = [&](size_t k) {
    if (is_roots_host) return absl::OkStatus();
    return JoinRails(output + chunks.begin(k), chunks.count(k));
  };
  return RunPipeline(waiter_, work);
}

// Pairs on different hosts exchange directly, meanwhile those of one host do among themselves.
absl::Status HierarchicalCollectives::Alltoall(const AlltoallArgs& args) {
  if (hosts() == 1) return host_->Alltoall(args);
  if (flat()) return rail_->Alltoall(args);
  const int first = topology_.first_rank(place_.host);
  std::vector<int> others;
  for (int rank = 0; rank < size(); ++rank) {
    if (topology_.place(rank).host != place_.host) others.push_back(rank);
  }
  auto across = all_->StartAlltoall(args, others);
  if (!across.ok()) return across.status();
  const InBackground stepped(waiter_, across->get());
  const auto before = [first](absl::Span<const size_t> bytes) {
    return std::accumulate(bytes.begin(), bytes.begin() + first, size_t{0});
  };
  absl::Status exchanged =
      host_->Alltoall({.input = static_cast<const std::byte*>(args.input) + before(args.send_bytes),
                       .output = static_cast<std::byte*>(args.output) + before(args.receive_bytes),
                       .send_bytes = args.send_bytes.subspan(first, place_.local_size),
                       .receive_bytes = args.receive_bytes.subspan(first, place_.local_size)});
  if (!exchanged.ok()) return exchanged;
  return Finish(waiter_, across->get());
}

}  // namespace hvd
