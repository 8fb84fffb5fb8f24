// SPDX-License-Identifier: Apache-2.0
// The collectives of a process set: on one host, or on several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "runtime/collective/host/host_collectives.h"
#include "runtime/engine/world/set_seat.h"

namespace hvd::rt {

// All is borrowed.
struct CollectivesGround {
  Waiter* waiter = nullptr;
  Transport* transport = nullptr;  // null in a set on one host
  std::byte* region = nullptr;
  const SetSeat* seat = nullptr;
  uint16_t channel = 0;
};

// Threads: the executor's.
class SetCollectives {
 public:
  // Meets the set's other ranks; waits for all of them. Once.
  absl::Status Meet(const CollectivesGround& ground);

  Collectives& all() { return *all_; }
  HostCollectives* on_host() { return on_host_; }  // null in a set of several hosts
  void SetThresholds(const HierarchicalThresholds& thresholds);

 private:
  std::unique_ptr<Collectives> all_;
  HostCollectives* on_host_ = nullptr;               // what all_ is, on one host
  HierarchicalCollectives* across_hosts_ = nullptr;  // or on several
};

}  // namespace hvd::rt
