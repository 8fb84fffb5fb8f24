#include "runtime/collective/hierarchical_collectives.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/collective/slices.h"

namespace hvd {

absl::StatusOr<std::unique_ptr<HierarchicalCollectives>> HierarchicalCollectives::Create(
    const HierarchicalOptions& options, const HierarchicalThresholds& thresholds) {
  const RankPlace& place = options.topology->place(options.rank);
  auto host = HostCollectives::Create({.waiter = options.waiter,
                                       .region = options.region,
                                       .local_rank = place.local_rank,
                                       .local_size = place.local_size},
                                      thresholds.host);
  if (!host.ok()) return host.status();
  return std::unique_ptr<HierarchicalCollectives>(
      new HierarchicalCollectives(options, thresholds, *std::move(host)));
}

HierarchicalCollectives::HierarchicalCollectives(const HierarchicalOptions& options,
                                                 const HierarchicalThresholds& thresholds,
                                                 std::unique_ptr<HostCollectives> host)
    : topology_(*options.topology),
      place_(topology_.place(options.rank)),
      thresholds_(thresholds),
      host_(std::move(host)) {
  const int hosts = static_cast<int>(topology_.hosts().size());
  rails_ = topology_.hosts()[0].ranks;
  for (const HostShape& host_shape : topology_.hosts()) rails_ = std::min(rails_, host_shape.ranks);
  if (place_.local_rank >= rails_) return;
  MessageGroupOptions rail;
  rail.waiter = options.waiter;
  rail.transport = options.transport;
  rail.index = place_.host;
  rail.channel = options.channel;  // rails share no rank
  for (int h = 0; h < hosts; ++h) {
    const int member = topology_.first_rank(h) + place_.local_rank;
    rail.ranks.push_back(options.global_ranks.empty() ? member : options.global_ranks[member]);
  }
  rail_ = std::make_unique<MessageCollectives>(std::move(rail), thresholds.message);
}

absl::Status HierarchicalCollectives::Allreduce(const ReduceArgs& args) {
  if (topology_.hosts().size() == 1) return host_->Allreduce(args);
  if (args.dtype == HVD_BOOL && args.op == HVD_AVERAGE) {
    return absl::InvalidArgumentError("bool has no average; use MIN or MAX");
  }
  const size_t bytes = args.count * DtypeBytes(args.dtype);
  return bytes < thresholds_.rails_bytes ? AllreduceOnFirstRail(args) : AllreduceOnRails(args);
}

absl::Status HierarchicalCollectives::AllreduceOnFirstRail(const ReduceArgs& args) {
  ReduceArgs within = args;
  if (args.op == HVD_AVERAGE) within.op = HVD_SUM;  // divided once, at the end
  if (absl::Status summed = host_->Allreduce(within); !summed.ok()) return summed;
  if (leads()) {
    ReduceArgs across = args;
    across.input = args.output;
    if (absl::Status crossed = rail_->Allreduce(across, size()); !crossed.ok()) return crossed;
  }
  return host_->Broadcast({.input = args.output,
                           .output = args.output,
                           .bytes = args.count * DtypeBytes(args.dtype),
                           .root = 0});
}

absl::Status HierarchicalCollectives::AllreduceOnRails(const ReduceArgs& args) {
  const size_t width = DtypeBytes(args.dtype);
  std::vector<size_t> bounds = EvenSlices(args.count, rails_);
  bounds.resize(place_.local_size + 1, args.count);
  const size_t begin = bounds[place_.local_rank];
  auto* slice = static_cast<std::byte*>(args.output) + begin * width;

  ReduceArgs within = args;
  if (args.op == HVD_AVERAGE) within.op = HVD_SUM;
  within.output = slice;
  if (absl::Status summed = host_->ReduceScatter(within, bounds); !summed.ok()) return summed;
  if (rail_ != nullptr) {
    ReduceArgs across = args;
    across.input = across.output = slice;
    across.count = bounds[place_.local_rank + 1] - begin;
    if (absl::Status crossed = rail_->Allreduce(across, size()); !crossed.ok()) return crossed;
  }
  std::vector<size_t> slice_bytes(place_.local_size);
  for (int i = 0; i < place_.local_size; ++i) slice_bytes[i] = (bounds[i + 1] - bounds[i]) * width;
  return host_->Allgather({.input = slice, .output = args.output, .bytes_by_rank = slice_bytes});
}

// Each host gathers its own block in place, the first rail exchanges the blocks, and each host
// passes on what lies before and after its own.
absl::Status HierarchicalCollectives::Allgather(const GatherArgs& args) {
  if (topology_.hosts().size() == 1) return host_->Allgather(args);
  auto* output = static_cast<std::byte*>(args.output);
  std::vector<size_t> block_bytes;
  for (size_t h = 0; h < topology_.hosts().size(); ++h) {
    const auto ranks =
        args.bytes_by_rank.subspan(topology_.first_rank(h), topology_.hosts()[h].ranks);
    block_bytes.push_back(SumAndLargest(ranks).first);
  }
  const auto first = block_bytes.begin();
  const size_t before = std::accumulate(first, first + place_.host, size_t{0});
  const size_t mine = block_bytes[place_.host];
  const size_t total = std::accumulate(first, block_bytes.end(), size_t{0});
  absl::Status gathered =
      host_->Allgather({.input = args.input,
                        .output = output + before,
                        .bytes_by_rank = args.bytes_by_rank.subspan(
                            topology_.first_rank(place_.host), place_.local_size)});
  if (!gathered.ok()) return gathered;
  if (leads()) {
    absl::Status crossed = rail_->Allgather(
        {.input = output + before, .output = output, .bytes_by_rank = block_bytes});
    if (!crossed.ok()) return crossed;
  }
  absl::Status passed = host_->Broadcast({output, output, before, 0});
  if (!passed.ok()) return passed;
  std::byte* after = output + before + mine;
  return host_->Broadcast({after, after, total - before - mine, 0});
}

// Along the root's own rail if it has one; else its host hears first and the first rail carries on.
absl::Status HierarchicalCollectives::Broadcast(const BroadcastArgs& args) {
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

absl::Status HierarchicalCollectives::Barrier() {
  if (absl::Status come = host_->Barrier(); !come.ok()) return come;
  if (topology_.hosts().size() == 1) return absl::OkStatus();
  if (leads()) {
    if (absl::Status crossed = rail_->Barrier(); !crossed.ok()) return crossed;
  }
  return host_->Barrier();
}

}  // namespace hvd
