// SPDX-License-Identifier: Apache-2.0
// The memories of this host's epochs: made for the first member that enters, gone with the last;
// what they said of the members stays. Belongs to the links thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "daemon/members/epoch_plan.h"
#include "daemon/members/memory/epoch_memory.h"
#include "daemon/members/worker_slot.h"

namespace hvd::daemon {

struct MemoryHandlers {
  std::function<void(EpochMemory* memory)> on_create;
  std::function<void()> on_forget;  // a memory goes: look at it now
};

class HostMemories {
 public:
  using ByEpoch = std::map<uint64_t, std::shared_ptr<EpochMemory>>;

  // `workers` outlives it; the counts of epochs that go are added there.
  HostMemories(MemoryHandlers handlers, WorkerSlots* workers)
      : handlers_(std::move(handlers)), workers_(workers) {}

  absl::Status Create(const EpochPlan& plan);
  // The bytes that all ranks take at first; nothing where the epoch has no memory.
  absl::Status SetFirst(uint64_t epoch, uint64_t bytes);
  // Marks the page and rings. Returns whether there is one.
  bool Abort(uint64_t epoch, const std::string& cause);
  // The epoch's members are to change; it may get its memory later.
  void Change(uint64_t epoch);
  // Nobody is in the epoch any more, nor will be.
  void Quiet(uint64_t epoch) { changing_.erase(epoch); }
  void Forget(uint64_t epoch);

  const ByEpoch& by_epoch() const { return memories_; }
  // Null: it has none, or has it no more.
  std::shared_ptr<EpochMemory> Find(uint64_t epoch) const;
  // Returns the page's word; empty where the epoch has no memory.
  AbortWord AbortOf(uint64_t epoch) const;

 private:
  const MemoryHandlers handlers_;
  WorkerSlots* const workers_;
  ByEpoch memories_;
  std::set<uint64_t> changing_;  // epochs that were to change before they had a memory
};

}  // namespace hvd::daemon
