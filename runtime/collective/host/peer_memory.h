// SPDX-License-Identifier: Apache-2.0
// Private memory of the host's other ranks, read by the system (process_vm_readv): no copy by its
// owner, but a system call a piece and a look at every page. The system may refuse: other users,
// Yama's ptrace_scope, a container's filter, memory that belongs to a device.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace hvd::rt {

// A rank's word to the others on an allreduce's tensor; small enough to travel with an arrival
// (region.h).
struct MemoryOffer {
  pid_t pid = 0;
  const std::byte* input = nullptr;  // nothing: this rank's tensor is not in one piece
  const std::byte* output = nullptr;
  // A number in that process and where it stands there: whoever reads it has found the process,
  // and not one that has the same number in another namespace.
  const uint64_t* token_at = nullptr;
  uint64_t token = 0;
};

// Returns this process's offer.
MemoryOffer OfferMemory(const void* input, const void* output, const uint64_t* token);

// Whether this process can read the token, and the first and the last of both tensors' `bytes`.
bool CanRead(const MemoryOffer& offer, size_t bytes);

// Unavailable says what the system said.
absl::Status ReadMemory(pid_t pid, const std::byte* from, std::byte* to, size_t bytes);

}  // namespace hvd::rt
