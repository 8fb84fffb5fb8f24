// The ways through a host's memory, as functions over a HostGroup. Which is right depends on the
// size and on where the tensors lie: host_collectives.cc chooses, the same on every rank.
//
// One shot: everyone shows its whole tensor in a slot, and everyone reads all; one wait.
// Staged: in rounds through stages that stay in the second-level cache. In a round of a reduction a
//   rank shows each other rank the piece of its input that is that rank's to sum, sums its own
//   piece out of its input and what the others show, and writes the sum where they showed it: so
//   lines cross between cores once each way, and each finds its results in its own stage. Rounds
//   overlap.
// Peer reads: each reads, through the system, the others' parts of its slice from their private
//   memory, and later the sums from their owners' outputs.
// Zero copy: the tensors lie in shared memory themselves. Each sums its slice out of all inputs and
//   writes it into all outputs; nothing is staged.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/peer_memory.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/tensor_view.h"

namespace hvd {

// A reduction whose slices belong to the ranks: rank r sums elements bounds[r] to bounds[r + 1].
struct HostReduce {
  ReduceKernel kernel = nullptr;
  ReduceTask scales;  // its divisor and scales
  const TensorView& tensors;
  const std::vector<size_t>& bounds;  // not used by one shot
  bool gather = true;                 // collect the other ranks' slices too, into the tensors
  std::byte* slice_output = nullptr;  // where this rank's own slice goes if not

  // Elements; may be none.
  struct Range {
    size_t begin = 0;
    size_t count = 0;
  };
  // What of `owner`'s slice comes in a round that takes `piece` elements of each.
  Range Piece(int owner, uint64_t round, size_t piece) const;
  size_t largest_slice() const;  // elements
  void Combine(absl::Span<const void* const> sources, absl::Span<void* const> destinations,
               size_t count) const;
};

// REQUIRES: tensors' bytes <= HostRegion::kSlotBytes; gather.
absl::Status OneShotReduce(HostGroup& group, const HostReduce& reduce);
// REQUIRES: every part <= HostRegion::kSlotBytes.
absl::Status OneShotAllgather(HostGroup& group, const GatherArgs& args);
// REQUIRES: bytes <= HostRegion::kSlotBytes.
absl::Status OneShotBroadcast(HostGroup& group, const BroadcastArgs& args);

struct StagedOptions {
  size_t piece_bytes = 0;  // of what one rank shows another in one round; cut to what a stage holds
  bool streams = false;    // outputs go past the caches
};
absl::Status StagedReduce(HostGroup& group, const HostReduce& reduce, const StagedOptions& options);
// REQUIRES: one tensor; gather. `offers`: everyone's, by rank, after all have come; nobody may
// touch its tensor before all are through.
absl::Status PeerReadReduce(HostGroup& group, const HostReduce& reduce,
                            absl::Span<const MemoryOffer> offers);
absl::Status StagedAllgather(HostGroup& group, const GatherArgs& args,
                             const StagedOptions& options);
absl::Status StagedBroadcast(HostGroup& group, const BroadcastArgs& args,
                             const StagedOptions& options);
// Small ones need no stage: the first piece for each rank goes through the slot.
absl::Status StagedAlltoall(HostGroup& group, const AlltoallArgs& args,
                            const StagedOptions& options);

// Copies to an output.
void CopyOut(void* to, const void* from, size_t bytes, bool streams);

// REQUIRES: tensors.all_in_shared_memory(); gather. The first only reads and writes these elements
// of all buffers, needs no bounds, and leaves it to the caller who meets whom before and after.
absl::Status SumSlice(const HostGroup& group, const HostReduce& reduce, size_t begin, size_t end);
absl::Status ZeroCopyReduce(HostGroup& group, const HostReduce& reduce);

}  // namespace hvd
