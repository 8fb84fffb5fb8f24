// SPDX-License-Identifier: Apache-2.0
// Staged copies, of what fits no shelf: in rounds through stages that stay in the second-level
// cache. In a round a rank shows a piece of its own data and copies out what the others show;
// rounds overlap.
//
// Threads: as HostGroup.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/host/host_group.h"

namespace hvd::rt {

struct StagedOptions {
  size_t piece_bytes = 0;  // of what one rank shows another in one round; cut to what a stage holds
  bool streams = false;    // outputs go past the caches
};

absl::Status StagedAllgather(HostGroup& group, const GatherArgs& args,
                             const StagedOptions& options);
absl::Status StagedBroadcast(HostGroup& group, const BroadcastArgs& args,
                             const StagedOptions& options);

// An alltoall. The first piece for each rank goes over the shelf, so that small ones need no stage.
absl::Status StagedAlltoall(HostGroup& group, const AlltoallArgs& args,
                            const StagedOptions& options);

// Copies to an output.
void CopyOut(void* to, const void* from, size_t bytes, bool streams);

}  // namespace hvd::rt
