// SPDX-License-Identifier: Apache-2.0
// Requests on one host whose marks say where the tensors lie: in the arenas, or, for a tensor in
// private memory, in its rank's stage. Each rank does its part out of everyone's. Nothing here
// waits.
//
// Allreduces and broadcasts (in_place.cc) write to the others' tensors too: each rank sums its
// slice out of everyone's inputs and into everyone's outputs; its own slice of a private tensor is
// never staged, only the others'. For allgathers, reduce-scatters and alltoalls (shown inputs) each
// rank makes its result by itself, in memory of whatever kind.
#pragma once

#include "runtime/collective/host/host_collectives.h"
#include "runtime/engine/direct/direct.h"
#include "runtime/engine/direct/direct_execute.h"
#include "runtime/engine/request/local_name.h"
#include "runtime/engine/request/tensor_places.h"
#include "runtime/transport/waiter.h"

namespace hvd::rt {

// Threads: Mark under the engine's lock, the rest by its executor. All that it is given is
// borrowed.
class InPlace {
 public:
  InPlace(Direct* direct, const TensorPlaces* places, HostCollectives* on_host, Waiter* waiter)
      : direct_(direct), places_(places), on_host_(on_host), waiter_(waiter) {}

  // Writes where the pending request's tensor lies, if the others can reach it: then
  // name->direct.in_place.
  void Mark(LocalName* name) const;
  // All have marked: does this rank's part. An error that is returned ends the epoch, for the
  // others count on this rank; an error of this rank alone (its output does not fit) stands in the
  // request's status.
  absl::Status Work(const LocalName& name) const;
  // All have done their part.
  void Collect(const LocalName& name) const;

  void set_stream_bytes(size_t bytes) { stream_bytes_ = bytes; }

 private:
  struct Buffers {
    const void* inputs[kMaxLocalRanks];
    void* outputs[kMaxLocalRanks];
  };
  void MarkBuffers(LocalName* name) const;
  void StageOthersSlices(const Request& request) const;
  void CollectOthersSlices(const Request& request) const;
  absl::Status FindBuffers(const LocalName& name, Buffers* buffers) const;
  absl::Status Sum(const LocalName& name) const;
  absl::Status Broadcast(const LocalName& name) const;
  void MarkInput(LocalName* name) const;
  void StageForOthers(const Request& request) const;
  absl::StatusOr<ShownInput> FindInput(const LocalName& name, int peer) const;
  absl::Status Fetch(const LocalName& name) const;

  Direct* const direct_;
  const TensorPlaces* const places_;
  HostCollectives* const on_host_;
  Waiter* const waiter_;
  size_t stream_bytes_ = 0;
};

}  // namespace hvd::rt
