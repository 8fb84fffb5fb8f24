// SPDX-License-Identifier: Apache-2.0
// A reduction by peer reads: each rank reads, through the system, the others' parts of its slice
// from their private memory, and later the sums from their owners' outputs. Nothing is staged.
//
// Threads: as HostGroup.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/host_reduce.h"
#include "runtime/collective/host/peer_memory.h"

namespace hvd::rt {

// REQUIRES: one tensor; gather. `offers`: everyone's, by rank, after all have come; nobody may
// touch its tensor before all are through.
absl::Status PeerReadReduce(HostGroup& group, const HostReduce& reduce,
                            absl::Span<const MemoryOffer> offers);

}  // namespace hvd::rt
