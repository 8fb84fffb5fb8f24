// SPDX-License-Identifier: Apache-2.0
// The way between this rank and one other for sends and receives: notices in their order, and
// parcels, which both sides know when they begin. Nothing in it waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/pairs/pair_notice.h"

namespace hvd::rt {

// A tensor on its way. Not empty.
struct Parcel {
  uint32_t number = 0;  // the sender's, of those to this receiver
  std::byte* data = nullptr;
  size_t bytes = 0;
  size_t moved = 0;  // of them; the link's
};

// Threads: one at a time, the process set's executor. Errors end the epoch.
class PairLink {
 public:
  virtual ~PairLink() = default;
  // False: there is no room now.
  virtual absl::StatusOr<bool> Send(const PairNotice& notice) = 0;
  // How many of those that Send has taken have left this process.
  virtual uint64_t gone() const = 0;
  virtual absl::StatusOr<bool> Receive(PairNotice* notice) = 0;
  // The parcel stays where it is until it is done, or the link goes.
  virtual absl::Status BeginSend(Parcel* parcel) = 0;
  virtual absl::Status BeginReceive(Parcel* parcel) = 0;
  // Moves parcels on; true if something moved. Parcels that are done are appended.
  virtual absl::StatusOr<bool> Step(std::vector<Parcel*>* done) = 0;
};

}  // namespace hvd::rt
