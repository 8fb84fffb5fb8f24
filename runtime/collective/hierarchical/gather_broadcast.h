// SPDX-License-Identifier: Apache-2.0
// The collectives that move bytes over several hosts and reduce nothing: allgather, broadcast and
// alltoall. A block is what one host's ranks bring to an allgather. The bytes that cross are
// divided among the rails, and joined again inside each host.
#pragma once

#include "runtime/collective/hierarchical/rails.h"

namespace hvd::rt {

// REQUIRES for all: several hosts. Threads: as Rails.
absl::Status AllgatherAcross(Rails& rails, const GatherArgs& args);
absl::Status BroadcastAcross(Rails& rails, const BroadcastArgs& args);
absl::Status AlltoallAcross(Rails& rails, const AlltoallArgs& args);

}  // namespace hvd::rt
