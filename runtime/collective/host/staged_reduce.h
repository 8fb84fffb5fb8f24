// SPDX-License-Identifier: Apache-2.0
// A staged reduction, of tensors in private memory: in rounds through stages that stay in the
// second-level cache. In a round a rank shows each other rank the piece of its input that is that
// rank's to sum, sums its own piece out of its input and what the others show, and writes the sum
// where they showed it: so lines cross between cores once each way, and each finds its results in
// its own stage. Rounds overlap.
//
// Threads: as HostGroup.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/host_reduce.h"
#include "runtime/collective/host/staged_copy.h"

namespace hvd::rt {

absl::Status StagedReduce(HostGroup& group, const HostReduce& reduce, const StagedOptions& options);

}  // namespace hvd::rt
