// SPDX-License-Identifier: Apache-2.0
// One shot: everyone shows its whole tensor on its shelf, and everyone reads all; one wait. For
// small tensors: up to Arrival::kPayloadBytes travel in the arrival's own cache line.
//
// Threads: as HostGroup.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/host_reduce.h"

namespace hvd::rt {

// REQUIRES: the tensors' bytes <= HostRegion::kShelfBytes; gather.
absl::Status OneShotReduce(HostGroup& group, const HostReduce& reduce);
// REQUIRES: every part <= HostRegion::kShelfBytes.
absl::Status OneShotAllgather(HostGroup& group, const GatherArgs& args);
// REQUIRES: bytes <= HostRegion::kShelfBytes.
absl::Status OneShotBroadcast(HostGroup& group, const BroadcastArgs& args);

}  // namespace hvd::rt
