// SPDX-License-Identifier: Apache-2.0
// An allreduce over several hosts: a reduce-scatter inside each host (over the rails' ranks), an
// allreduce of each slice along its rail, and an allgather inside each host, so every host sends
// and receives 2(h-1)/h of the buffer whatever its number of ranks.
#pragma once

#include "runtime/collective/hierarchical/rails.h"

namespace hvd::rt {

// REQUIRES: several hosts; not TravelsWide. Threads: as Rails.
absl::Status AllreduceAcross(Rails& rails, const ReduceArgs& args);

}  // namespace hvd::rt
