// SPDX-License-Identifier: Apache-2.0
// What moves bytes over several hosts and reduces nothing: allgather, broadcast and alltoall. A
// block is what one host's ranks bring to an allgather. What crosses is divided among the rails,
// and joined again inside each host.
#pragma once

#include "runtime/collective/hierarchical/rails.h"

namespace hvd {

// REQUIRES for all: several hosts. Threads: as Rails.
absl::Status AllgatherAcross(Rails& rails, const GatherArgs& args);
absl::Status BroadcastAcross(Rails& rails, const BroadcastArgs& args);
absl::Status AlltoallAcross(Rails& rails, const AlltoallArgs& args);

}  // namespace hvd
