// SPDX-License-Identifier: Apache-2.0
// The process sets of an epoch: which there are, and an engine for each that this rank is a member
// of.
//
// Every rank knows every set, and makes the same changes in the same order: a change is agreed on
// the global set's engine first, like any collective. Threads: all functions from any thread;
// changes are serialised.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/engine/engine.h"
#include "runtime/sets/global_entrance.h"
#include "runtime/sets/join_turns.h"
#include "runtime/sets/process_set.h"
#include "runtime/sets/set_requests.h"
#include "runtime/sets/set_table.h"

namespace hvd::rt {

// Returns them ascending, if they are of a job of `world` ranks, each once.
absl::StatusOr<std::vector<int>> CheckRanks(absl::Span<const int32_t> ranks, int world);

class ProcessSets {
 public:
  using SetPointer = hvd::rt::SetPointer;

  // Makes the device work of a set's engine; null: none.
  using DeviceFactory = std::function<SetDevice(EpochWorld*)>;
  // A new epoch: the global set alone.
  void Start(SetEngine global, const EngineConfig& config, DeviceFactory make_device = nullptr);
  // This rank has no more work in any set until all ranks of the job have joined: gives `join` one
  // request a set, the global one's first, whose number will be the rank that joined last. `ready`
  // is called when they are there, before they are submitted. Returns how many are; what is behind
  // these is done with an error, and the epoch is over. REQUIRES: a JoinTurn is taken.
  absl::StatusOr<size_t> Join(const std::shared_ptr<SetRequests>& join,
                              absl::FunctionRef<void()> ready);
  JoinTurns& joins() { return joins_; }
  // A JoinTurn is taken, or the join that was submitted last is not done.
  bool is_joining() const { return joins_.is_joining(); }
  // Leaves every set, and waits until all its members do. Afterwards there are none. A change that
  // is under way on another thread comes to its end first; later ones are refused.
  void Stop();

  // Collective over all ranks. AlreadyExists when a set of these ranks exists; *id is its number
  // then too.
  absl::Status Add(absl::Span<const int32_t> ranks, int32_t* id);
  // Collective over `ranks`, the others know nothing of it: member_sets.cc. AlreadyExists as above,
  // of these ranks and this key.
  absl::Status AddMembers(absl::Span<const int32_t> ranks, std::string_view key, int32_t* id);
  // Collective over all ranks, or over the members of such a set.
  absl::Status Remove(int32_t id);

  // The global set, which stays until as many LeaveGlobal have followed; null: there is none, and
  // nothing to leave. Cheaper than Find: most calls are the global set's.
  const ProcessSet* EnterGlobal() const { return entrance_.Enter(); }
  void LeaveGlobal() const { entrance_.Leave(); }

  SetPointer Find(int32_t id) const { return table_.Find(id); }  // null: there is none
  // InvalidArgument when there is none or this rank is no member.
  absl::StatusOr<SetPointer> FindAsMember(int32_t id) const;
  std::vector<int32_t> ids() const { return table_.ids(); }
  // How many this rank is a member of.
  int member_count() const { return static_cast<int>(table_.AsMember().size()); }

 private:
  absl::StatusOr<SetPointer> Global() const;
  absl::Status Make(ProcessSet* set) const;
  absl::Status RemoveMembers(const SetPointer& set);

  // The settings of this epoch. Start writes them while there is no set, so that nobody makes one
  // (Make reads them).
  EngineConfig config_;
  DeviceFactory make_device_;
  Mutex change_mutex_;  // held while a change is agreed and made, and while all sets go
  // Shared by those who make or remove sets that only members know; of those who need to know all
  // sets of this rank. After change_mutex_.
  SharedMutex members_mutex_;
  std::atomic<bool> stopping_{false};  // from Stop to the next Start
  SetTable table_;
  JoinTurns joins_;
  GlobalEntrance entrance_;
};

// Keeps the set that a call is for until the call is over.
class CallTarget {
 public:
  explicit CallTarget(const ProcessSets& sets) : sets_(sets) {}
  ~CallTarget() {
    if (inside_global_) sets_.LeaveGlobal();
  }
  CallTarget(const CallTarget&) = delete;
  CallTarget& operator=(const CallTarget&) = delete;

  // As ProcessSets::FindAsMember. Once.
  absl::Status Choose(int32_t id);
  const ProcessSet& operator*() const { return *set_; }
  const ProcessSet* operator->() const { return set_; }

 private:
  const ProcessSets& sets_;
  bool inside_global_ = false;
  ProcessSets::SetPointer held_;
  const ProcessSet* set_ = nullptr;
};

}  // namespace hvd::rt
