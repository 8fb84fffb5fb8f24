// SPDX-License-Identifier: Apache-2.0
// The ways from this rank to each other one of its set, for sends and receives.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/engine/pairs/host_pair_link.h"
#include "runtime/engine/world/set_seat.h"
#include "runtime/session/shared_space.h"
#include "runtime/transport/transport.h"

namespace hvd::rt {

// Inside a host, and between hosts. All is borrowed.
struct PairGround {
  SharedSpace* space = nullptr;
  PairPlaces places;
  Transport* transport = nullptr;
  uint16_t channel = 0;
};

class PairLinks {
 public:
  PairLinks(const SetSeat* seat, const PairGround& ground) : seat_(*seat), ground_(ground) {}

  absl::StatusOr<std::unique_ptr<PairLink>> To(int rank) const;
  // Whether there may be somebody who has begun to use it.
  bool MayBeUsed(int rank) const;

 private:
  const SetSeat& seat_;
  const PairGround ground_;
};

}  // namespace hvd::rt
