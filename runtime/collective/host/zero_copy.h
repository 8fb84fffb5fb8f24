// SPDX-License-Identifier: Apache-2.0
// A zero-copy reduction: the tensors lie in shared memory themselves. Each rank sums its slice out
// of all inputs and writes it into all outputs; nothing is staged.
//
// Threads: as HostGroup.
#pragma once

#include "absl/status/status.h"
#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/host_reduce.h"

namespace hvd::rt {

// REQUIRES for both: tensors.all_in_shared_memory(); gather.
absl::Status ZeroCopyReduce(HostGroup& group, const HostReduce& reduce);
// Only reads and writes these elements of all buffers. Needs no bounds, and leaves it to the caller
// who meets whom before and after.
absl::Status SumSlice(const HostGroup& group, const HostReduce& reduce, size_t begin, size_t end);

}  // namespace hvd::rt
