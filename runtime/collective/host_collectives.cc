#include "runtime/collective/host_collectives.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/host_paths.h"
#include "runtime/collective/slices.h"

namespace hvd {

HostCollectives::HostCollectives(std::unique_ptr<HostGroup> group, const HostThresholds& thresholds)
    : group_(std::move(group)), thresholds_(thresholds) {}

absl::StatusOr<std::unique_ptr<HostCollectives>> HostCollectives::Create(
    const HostGroupOptions& options, const HostThresholds& thresholds) {
  auto group = HostGroup::Create(options);
  if (!group.ok()) return group.status();
  return std::unique_ptr<HostCollectives>(new HostCollectives(*std::move(group), thresholds));
}

std::byte* HostCollectives::Scratch() {
  if (scratch_ == nullptr) scratch_.reset(new std::byte[kScratchBytes]);
  return scratch_.get();
}

absl::Status HostCollectives::Allreduce(const ReduceArgs& args) {
  even_bounds_ = EvenSlices(args.count, size());
  return Reduce(args, even_bounds_, /*gather=*/true);
}

absl::Status HostCollectives::ReduceScatter(const ReduceArgs& args,
                                            const std::vector<size_t>& bounds) {
  return Reduce(args, bounds, /*gather=*/false);
}

absl::Status HostCollectives::Reduce(const ReduceArgs& args, const std::vector<size_t>& bounds,
                                     bool gather) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  const ReduceKernel kernel = FindReduceKernel(args.dtype, args.op, BestKernelLevel());
  if (kernel == nullptr) return absl::InvalidArgumentError("bool has no average; use MIN or MAX");
  if (args.count == 0) return absl::OkStatus();
  const HostReduce reduce{.kernel = kernel,
                          .divisor = args.op == HVD_AVERAGE ? size() : 1,
                          .element_bytes = DtypeBytes(args.dtype),
                          .input = static_cast<const std::byte*>(args.input),
                          .output = static_cast<std::byte*>(args.output),
                          .gather = gather,
                          .bounds = bounds};
  if (size() == 1) {
    const void* source = args.input;
    void* destination = args.output;
    kernel({&source, 1, &destination, 1, args.count, 1});
    return absl::OkStatus();
  }
  const size_t bytes = args.count * reduce.element_bytes;
  const size_t one_shot =
      std::min(HostRegion::kSlotBytes,
               std::max(Mark::kPayloadBytes, thresholds_.one_shot_bytes * 2 / size()));
  if (gather && bytes <= one_shot) return OneShotReduce(*group_, reduce);
  if (ReadsPeers(bytes)) {
    return PeerReadReduce(*group_, reduce,
                          {thresholds_.peer_read_piece_bytes, Scratch(), kScratchBytes});
  }
  return StagedReduce(*group_, reduce, thresholds_.staged_piece_bytes);
}

absl::Status HostCollectives::Allgather(const GatherArgs& args) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  const auto [total, largest] = SumAndLargest(args.bytes_by_rank);
  if (total == 0) return absl::OkStatus();
  if (size() == 1) {
    if (args.output != args.input) memcpy(args.output, args.input, total);
    return absl::OkStatus();
  }
  const size_t one_shot = std::min(HostRegion::kSlotBytes, thresholds_.one_shot_bytes);
  if (largest <= one_shot) return OneShotAllgather(*group_, args);
  if (ReadsPeers(total)) return PeerReadAllgather(*group_, args);
  return StagedAllgather(*group_, args, thresholds_.staged_piece_bytes);
}

absl::Status HostCollectives::Broadcast(const BroadcastArgs& args) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  if (args.bytes == 0) return absl::OkStatus();
  if (size() == 1) {
    if (args.output != args.input) memcpy(args.output, args.input, args.bytes);
    return absl::OkStatus();
  }
  // In quarters: the others copy out one piece while the root copies in the next.
  if (args.bytes <= thresholds_.one_shot_bytes / 4) return OneShotBroadcast(*group_, args);
  if (ReadsPeers(args.bytes)) return PeerReadBroadcast(*group_, args);
  return StagedBroadcast(*group_, args, thresholds_.staged_piece_bytes / 4);
}

absl::Status HostCollectives::Barrier() {
  if (absl::Status begun = group_->Begin(); !begun.ok()) return begun;
  group_->PublishMark({});
  return group_->AwaitMarks();
}

}  // namespace hvd
