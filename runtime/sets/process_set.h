// SPDX-License-Identifier: Apache-2.0
// A process set of an epoch, as this rank has it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/sets/device_route.h"
#include "runtime/sets/set_seen.h"

namespace hvd::rt {

// Immutable. Held by calls in flight (CallTarget), so that a removal on one thread takes nothing
// away under another.
struct ProcessSet : std::enable_shared_from_this<ProcessSet> {
  int32_t id = HVD_GLOBAL_PROCESS_SET;
  int region = 0;          // of the epoch's memory
  std::vector<int> ranks;  // global, ascending
  int index = -1;          // this rank's among them; -1: no member
  // Destroyed in reverse order: a set's engine borrows from the global one's world.
  std::shared_ptr<Engine> global_engine;  // null in the global set
  std::shared_ptr<Engine> engine;         // null when no member
  DeviceRoute* route = nullptr;           // the engine's; null: it has no device
  RankTotals counted_before = {};         // by this rank, for sets that had the region earlier
  std::string key;                        // of a set that only its members know
  int channels = 0;                       // likewise: not 0
  uint64_t memory_at = 0;                 // likewise

  Membership membership() const { return {id, ranks, index}; }
  // Keeps the whole set: its engine must not outlive the global one's world.
  std::shared_ptr<Engine> shared_engine() const { return {shared_from_this(), engine.get()}; }
};

using SetPointer = std::shared_ptr<const ProcessSet>;

// "[0,2]"
std::string Numbers(const std::vector<int>& ranks);
// "process set 3 [0,2]"
std::string Describe(const ProcessSet& set);

}  // namespace hvd::rt
