// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/one_shot.h"

#include "absl/container/inlined_vector.h"
#include "runtime/collective/kernels/copy.h"

namespace hvd::rt {
namespace {

// Shows `bytes` to the peers: with the arrival if they fit, else on the shelf.
void Show(HostGroup& group, const void* data, size_t bytes) {
  if (bytes <= Arrival::kPayloadBytes) {
    group.Arrive({static_cast<const std::byte*>(data), bytes});
    return;
  }
  CopyBytes(group.shelf(group.rank()), data, bytes);
  group.Arrive({});
}

const std::byte* Shown(const HostGroup& group, int peer, size_t bytes) {
  return bytes <= Arrival::kPayloadBytes ? group.payload(peer) : group.shelf(peer);
}

}  // namespace

absl::Status OneShotReduce(HostGroup& group, const HostReduce& reduce) {
  if (absl::Status begun = group.Begin(); !begun.ok()) return begun;
  const TensorView& tensors = reduce.tensors;
  const size_t bytes = reduce.bytes();
  if (bytes <= Arrival::kPayloadBytes) {
    std::byte payload[Arrival::kPayloadBytes];
    tensors.CopyIn(0, tensors.count(), payload);
    group.Arrive({payload, bytes});
  } else {
    tensors.CopyIn(0, tensors.count(), group.shelf(group.rank()));
    group.Arrive({});
  }
  if (absl::Status shown = group.AwaitArrivals(); !shown.ok()) return shown;
  absl::InlinedVector<const void*, 16> sources(group.size());
  tensors.ForEachPiece(0, tensors.count(), [&](const TensorView::Piece& piece) {
    for (int peer = 0; peer < group.size(); ++peer) {
      sources[peer] = peer == group.rank() ? piece.input() : Shown(group, peer, bytes) + piece.at;
    }
    void* output = piece.output();
    reduce.Combine(sources, {&output, 1}, piece.count);
  });
  return absl::OkStatus();
}

absl::Status OneShotAllgather(HostGroup& group, const GatherArgs& args) {
  if (absl::Status begun = group.Begin(); !begun.ok()) return begun;
  Show(group, args.input, args.bytes_by_rank[group.rank()]);
  auto* to = static_cast<std::byte*>(args.output);
  for (int peer = 0; peer < group.size(); ++peer) {
    const size_t bytes = args.bytes_by_rank[peer];
    if (peer == group.rank()) {
      if (to != args.input) CopyBytes(to, args.input, bytes);
    } else {
      if (absl::Status shown = group.AwaitArrival(peer); !shown.ok()) return shown;
      CopyBytes(to, Shown(group, peer, bytes), bytes);
    }
    to += bytes;
  }
  return absl::OkStatus();
}

absl::Status OneShotBroadcast(HostGroup& group, const BroadcastArgs& args) {
  if (absl::Status begun = group.Begin(); !begun.ok()) return begun;
  if (group.rank() == args.root) {
    Show(group, args.input, args.bytes);
    if (args.output != args.input) CopyBytes(args.output, args.input, args.bytes);
    return absl::OkStatus();
  }
  group.Arrive({});
  if (absl::Status shown = group.AwaitArrival(args.root); !shown.ok()) return shown;
  CopyBytes(args.output, Shown(group, args.root, args.bytes), args.bytes);
  return absl::OkStatus();
}

}  // namespace hvd::rt
