// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/host_collectives.h"

#include <algorithm>

#include "runtime/collective/host/one_shot.h"
#include "runtime/collective/host/staged_reduce.h"
#include "runtime/collective/host/zero_copy.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/reduction_rules.h"
#include "runtime/collective/slices.h"

namespace hvd::rt {

HostCollectives::HostCollectives(std::unique_ptr<HostGroup> group, const HostThresholds& thresholds)
    : group_(std::move(group)), thresholds_(thresholds) {}

absl::StatusOr<std::unique_ptr<HostCollectives>> HostCollectives::Create(
    const HostGroupOptions& options, const HostThresholds& thresholds) {
  auto group = HostGroup::Create(options);
  if (!group.ok()) return group.status();
  return std::unique_ptr<HostCollectives>(new HostCollectives(*std::move(group), thresholds));
}

namespace {

// The kernel and its scales, or why there is none.
absl::StatusOr<ReduceKernel> FindKernel(const ReduceArgs& args, int size, ReduceTask* scales) {
  if (args.op == HVD_AVERAGE) scales->divisor = args.divisor > 0 ? args.divisor : size;
  scales->prescale = args.prescale;
  scales->postscale = args.postscale;
  return KernelFor({args.dtype, args.op, args.prescale, args.postscale});
}

// Copies go one way and need no second look at a stage, so larger pieces than a reduction's are
// better: up to four times, but always two, so that one is copied out while the next comes in.
// `bytes`: the most that one rank shows.
size_t CopyPiece(const HostThresholds& thresholds, size_t bytes) {
  const size_t least = thresholds.staged_piece_bytes;
  return std::clamp(bytes / 2, least, 4 * least);
}
// An alltoall's may not depend on sizes that other ranks do not know; the readers share the stage.
size_t AlltoallPiece(const HostThresholds& thresholds, int readers) {
  const size_t least = thresholds.staged_piece_bytes;
  return std::max(least, 4 * least / static_cast<size_t>(readers));
}

// Reduces in a group of one.
void ReduceAlone(const HostReduce& reduce) {
  const TensorView& tensors = reduce.tensors;
  tensors.ForEachPiece(0, tensors.count(), [&](const TensorView::Piece& piece) {
    const void* source = piece.input();
    void* destination = reduce.gather ? piece.output() : reduce.slice_output + piece.at;
    reduce.Combine({&source, 1}, {&destination, 1}, piece.count);
  });
}

}  // namespace

absl::Status HostCollectives::Allreduce(const ReduceArgs& args) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  ReduceTask scales;
  const auto kernel = FindKernel(args, size(), &scales);
  if (!kernel.ok()) return kernel.status();
  const TensorView tensors(args);
  if (tensors.count() == 0) return absl::OkStatus();
  std::vector<size_t> bounds;
  const HostReduce reduce{
      .kernel = *kernel, .scales = scales, .tensors = tensors, .bounds = bounds};
  if (size() == 1) {
    ReduceAlone(reduce);
    return absl::OkStatus();
  }
  const size_t bytes = tensors.count() * tensors.element_bytes();
  const bool zero_copy = tensors.all_in_shared_memory();
  const size_t one_shot =
      std::min(HostRegion::kShelfBytes,
               std::max(Arrival::kPayloadBytes, thresholds_.one_shot_bytes * 2 / size()));
  if (bytes <= Arrival::kPayloadBytes || (bytes <= one_shot && !zero_copy)) {
    return OneShotReduce(*group_, reduce);
  }
  bounds = EvenSlices(tensors.count(), size());
  if (zero_copy) return ZeroCopyReduce(*group_, reduce);
  return large_reduce_.Run(*group_, reduce, {thresholds_.staged_piece_bytes},
                           thresholds_.peer_reads);
}

absl::Status HostCollectives::SumOwnSlice(const ReduceArgs& args) {
  ReduceTask scales;
  const auto kernel = FindKernel(args, size(), &scales);
  if (!kernel.ok()) return kernel.status();
  const TensorView tensors(args);
  const std::vector<size_t> no_bounds;
  const HostReduce reduce{
      .kernel = *kernel, .scales = scales, .tensors = tensors, .bounds = no_bounds};
  return SumSlice(*group_, reduce, EvenBound(tensors.count(), size(), rank()),
                  EvenBound(tensors.count(), size(), rank() + 1));
}

absl::Status HostCollectives::ReduceScatter(const ReduceScatterArgs& args) {
  std::vector<size_t> bounds{0};
  for (const size_t count : args.count_by_rank) bounds.push_back(bounds.back() + count);
  return ReduceScatter({.input = args.input,
                        .output = args.output,
                        .count = bounds.back(),
                        .dtype = args.dtype,
                        .op = args.op,
                        .prescale = args.prescale,
                        .postscale = args.postscale,
                        .divisor = args.divisor},
                       bounds);
}

absl::Status HostCollectives::ReduceScatter(const ReduceArgs& args,
                                            const std::vector<size_t>& bounds) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  ReduceTask scales;
  const auto kernel = FindKernel(args, size(), &scales);
  if (!kernel.ok()) return kernel.status();
  const TensorView tensors(args);
  if (tensors.count() == 0) return absl::OkStatus();
  const HostReduce reduce{.kernel = *kernel,
                          .scales = scales,
                          .tensors = tensors,
                          .bounds = bounds,
                          .gather = false,
                          .slice_output = static_cast<std::byte*>(args.output)};
  if (size() > 1) return StagedReduce(*group_, reduce, {thresholds_.staged_piece_bytes});
  ReduceAlone(reduce);
  return absl::OkStatus();
}

absl::Status HostCollectives::Allgather(const GatherArgs& args) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  const auto [total, largest] = SumAndLargest(args.bytes_by_rank);
  if (total == 0) return absl::OkStatus();
  if (size() == 1) {
    if (args.output != args.input) CopyBytes(args.output, args.input, total);
    return absl::OkStatus();
  }
  const size_t one_shot = std::min(HostRegion::kShelfBytes, thresholds_.one_shot_bytes);
  if (largest <= one_shot) return OneShotAllgather(*group_, args);
  return StagedAllgather(*group_, args,
                         {CopyPiece(thresholds_, largest), total >= thresholds_.stream_bytes});
}

absl::Status HostCollectives::Alltoall(const AlltoallArgs& args) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  const size_t received = SumAndLargest(args.receive_bytes).first;
  const bool streams = received >= thresholds_.stream_bytes;
  if (size() > 1) {
    return StagedAlltoall(*group_, args, {AlltoallPiece(thresholds_, size() - 1), streams});
  }
  CopyOut(args.output, args.input, received, streams);
  return absl::OkStatus();
}

absl::Status HostCollectives::Broadcast(const BroadcastArgs& args) {
  if (absl::Status alive = group_->Check(); !alive.ok()) return alive;
  if (args.bytes == 0) return absl::OkStatus();
  if (size() == 1) {
    if (args.output != args.input) CopyBytes(args.output, args.input, args.bytes);
    return absl::OkStatus();
  }
  // In quarters: the others copy out one piece while the root copies in the next.
  if (args.bytes <= thresholds_.one_shot_bytes / 4) return OneShotBroadcast(*group_, args);
  return StagedBroadcast(
      *group_, args,
      {CopyPiece(thresholds_, args.bytes / 2) / 4, args.bytes >= thresholds_.stream_bytes});
}

absl::Status HostCollectives::Barrier() {
  if (absl::Status begun = group_->Begin(); !begun.ok()) return begun;
  group_->Arrive({});
  return group_->AwaitArrivals();
}

}  // namespace hvd::rt
