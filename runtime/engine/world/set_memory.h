// SPDX-License-Identifier: Apache-2.0
// A process set's part of the host's memory: a board, the collectives' region, the places of its
// pairs of ranks, and the direct marks where all its ranks are on one host.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "runtime/engine/pairs/host_pair_link.h"
#include "runtime/engine/world/set_seat.h"
#include "runtime/session/host_memory.h"

namespace hvd::rt {

class SetMemory {
 public:
  // `seat` is borrowed.
  explicit SetMemory(const SetSeat* seat) : seat_(*seat), shape_(ShapeOf(*seat)) {}

  // Returns the bytes that the ranks of a host map at first: the page, and the part of the job's
  // own set.
  static size_t FirstBytes(const Topology& job, int host);
  size_t bytes() const { return shape_.bytes; }

  // The set of all has what is behind the page.
  void Begin(std::byte* at) { at_ = at; }
  // Another set's is taken from the host's memory: where the seat says, else in its region.
  absl::Status Map(HostMemory* memory);
  // Gives that back: the region's number may be another's. REQUIRES: no rank here uses it.
  void GiveBack(HostMemory* memory) const;

  std::byte* board() const { return at_; }
  std::byte* collectives() const { return at_ + shape_.collectives; }
  std::byte* direct() const { return at_ + shape_.direct; }
  PairPlaces pairs() const { return {at_ + shape_.pairs, seat_.place().local_size}; }

 private:
  struct Shape {
    size_t collectives = 0, pairs = 0, direct = 0;  // where they begin
    size_t bytes = 0;
  };
  static Shape ShapeOf(const Topology& set, int host);
  static Shape ShapeOf(const SetSeat& seat) { return ShapeOf(seat.topology(), seat.place().host); }

  const SetSeat& seat_;
  const Shape shape_;
  std::shared_ptr<std::byte> mapped_;  // of a set that is not the global one
  std::byte* at_ = nullptr;
};

}  // namespace hvd::rt
