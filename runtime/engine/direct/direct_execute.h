// SPDX-License-Identifier: Apache-2.0
// Writes what a request brings beside its direct mark, and computes a rank's result out of
// everyone's.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "runtime/engine/direct/direct.h"

namespace hvd::rt {

// Bytes of what an alltoall of `size` ranks sends rank `peer`.
size_t PieceFor(const Request& request, int size, int peer);

// As DirectWordOf, with all that the request brings on this rank.
uint64_t DirectWord(const Request& request, int size);
// Writes to `room` what the others need of this rank's input; what only this rank needs stays in
// the input. An alltoall's bytes for each rank come first.
void WriteDirect(const Request& request, const Direct& direct, std::byte* room);
// REQUIRES: all marks are the same. Computes this rank's result; waits for nothing. If the request
// is wrong on this rank, its status says how; an error that is returned ends the epoch.
absl::Status ExecuteDirect(const Direct& direct, const DirectTicket& ticket, Request* request);

// The part of a rank's input that this rank needs. `bytes`: of an allgather or alltoall.
struct ShownInput {
  const std::byte* at;
  size_t bytes;
};
// The parts of everyone's input.
class ShownInputs {
 public:
  // `streams`: what is fetched goes past the caches.
  explicit ShownInputs(bool streams) : streams_(streams) {}
  void Add(const ShownInput& next) { inputs_.push_back(next); }  // by rank
  const std::byte* At(int rank) const { return inputs_[rank].at; }
  const ShownInput& Of(int rank) const { return inputs_[rank]; }
  bool streams() const { return streams_; }

 private:
  const bool streams_;
  absl::InlinedVector<ShownInput, 16> inputs_;
};
// The same of inputs that lie there.
absl::Status ExecuteShown(const Direct& direct, const ShownInputs& inputs, Request* request);

}  // namespace hvd::rt
