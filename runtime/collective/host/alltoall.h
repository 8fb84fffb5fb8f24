// An alltoall on one host. The first piece for each rank goes over the shelf, so that small ones
// need no stage; the rest is staged, as other copies.
//
// Threads: as HostGroup.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/staged_copy.h"

namespace hvd {

absl::Status StagedAlltoall(HostGroup& group, const AlltoallArgs& args,
                            const StagedOptions& options);

}  // namespace hvd
