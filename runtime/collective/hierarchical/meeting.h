// A first exchange between hosts, so that connections are made before the epoch's work: UCX 1.13
// ends the process when a peer dies while it answers that peer's request to connect.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/hierarchical/rails.h"
#include "runtime/transport/transport.h"

namespace hvd {

// In small groups everyone meets everyone of other hosts (an alltoall needs that), in larger ones
// the ranks of a rail, among very many hosts a rail's neighbours; others connect when they first
// send. `transport`: the rails'. Threads: as Rails.
absl::Status MeetPeers(const Rails& rails, Transport* transport);

}  // namespace hvd
