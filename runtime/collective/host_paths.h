// The ways through a host's memory, as functions over a HostGroup. Which is right depends on the
// size: host_collectives.cc chooses, the same on every rank.
//
// One shot: everyone shows its whole tensor in a slot, and everyone reads all; one wait.
// Staged: reduce-scatter and allgather in rounds through stages that stay in the second-level
//   cache. In a round a rank shows the others their slices of its input, sums its own slice out of
//   its input and what the others show, and shows the sum; its own slice is never staged, so that
//   room holds the sum. kStages rounds overlap.
// Peer read: as staged, but each reads its peers' private memory piece by piece into a buffer that
//   stays in the cache.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/host_group.h"
#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd {

// A reduction whose slices belong to the ranks: rank r sums elements bounds[r] to bounds[r + 1].
struct HostReduce {
  ReduceKernel kernel = nullptr;
  int divisor = 1;
  size_t element_bytes = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;  // all elements if `gather`, else this rank's slice
  bool gather = true;           // collect the other ranks' slices too
  const std::vector<size_t>& bounds;

  size_t count() const { return bounds.back(); }
  // Where this rank's own slice goes.
  std::byte* own_output(int rank) const {
    return gather ? output + bounds[rank] * element_bytes : output;
  }
  size_t largest_slice() const;  // elements
};

// REQUIRES: count * element_bytes <= HostRegion::kSlotBytes; gather.
absl::Status OneShotReduce(HostGroup& group, const HostReduce& reduce);
// REQUIRES: every part <= HostRegion::kSlotBytes.
absl::Status OneShotAllgather(HostGroup& group, const GatherArgs& args);
// REQUIRES: bytes <= HostRegion::kSlotBytes.
absl::Status OneShotBroadcast(HostGroup& group, const BroadcastArgs& args);

// `piece_bytes`: of a slice in one round; more than a stage holds is cut.
absl::Status StagedReduce(HostGroup& group, const HostReduce& reduce, size_t piece_bytes);
absl::Status StagedAllgather(HostGroup& group, const GatherArgs& args, size_t piece_bytes);
absl::Status StagedBroadcast(HostGroup& group, const BroadcastArgs& args, size_t piece_bytes);

struct PeerReadOptions {
  size_t piece_bytes = 0;  // read at once, from each peer
  std::byte* scratch = nullptr;
  size_t scratch_bytes = 0;
};
absl::Status PeerReadReduce(HostGroup& group, const HostReduce& reduce,
                            const PeerReadOptions& options);
absl::Status PeerReadAllgather(HostGroup& group, const GatherArgs& args);
absl::Status PeerReadBroadcast(HostGroup& group, const BroadcastArgs& args);

}  // namespace hvd
