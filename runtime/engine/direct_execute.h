// What a request brings beside its direct mark, and what a rank makes of everyone's.
#pragma once

#include "absl/status/status.h"
#include "runtime/engine/direct.h"

namespace hvd {

// Direct::WordOf, with all that the request brings on this rank.
uint64_t DirectWord(const Request& request, int size);
// Writes to `room` what the others need of this rank's input; what only this rank needs stays in
// the input. An alltoall's bytes for each rank come first.
void WriteDirect(const Request& request, const Direct& direct, std::byte* room);
// REQUIRES: all marks are the same. Computes this rank's result; waits for nothing.
absl::Status ExecuteDirect(const Direct& direct, const DirectTicket& ticket, Request* request);

}  // namespace hvd
