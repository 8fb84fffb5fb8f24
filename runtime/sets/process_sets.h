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
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/engine/engine.h"
#include "runtime/sets/set_requests.h"
#include "runtime/sets/set_seen.h"

namespace hvd {

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
  RankTotals counted_before = {};         // by this rank, for sets that had the region earlier
  std::string key;                        // of a set that only its members know
  int channels = 0;                       // likewise: not 0
  uint64_t memory_at = 0;                 // likewise

  Membership membership() const { return {id, ranks, index}; }
  // Keeps the whole set: its engine must not outlive the global one's world.
  std::shared_ptr<Engine> shared_engine() const { return {shared_from_this(), engine.get()}; }
};

// "process set 3 [0,2]"
std::string Describe(const ProcessSet& set);

class ProcessSets {
 public:
  using SetPointer = std::shared_ptr<const ProcessSet>;

  // Makes the device work of a set's engine; null: none.
  using DeviceFactory = std::function<std::unique_ptr<DeviceWork>(EpochWorld*)>;
  // A new epoch: the global set alone.
  void Start(std::shared_ptr<Engine> global, const EngineConfig& config,
             DeviceFactory make_device = nullptr);
  // This rank has no more work in any set until all ranks of the job have joined: gives `join` one
  // request a set, the global one's first, whose number will be the rank that joined last. `ready`
  // is called when they are there, before they are submitted. Returns how many are; what is behind
  // these is done with an error, and the epoch is over. REQUIRES: a JoinTurn is taken.
  absl::StatusOr<size_t> Join(const std::shared_ptr<SetRequests>& join,
                              absl::FunctionRef<void()> ready);
  // A JoinTurn is taken, or the join that was submitted last is not done.
  bool is_joining() const;
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
  const ProcessSet* EnterGlobal() const;
  void LeaveGlobal() const;

  SetPointer Find(int32_t id) const;  // null: there is none
  // InvalidArgument when there is none or this rank is no member.
  absl::StatusOr<SetPointer> FindAsMember(int32_t id) const;
  std::vector<int32_t> ids() const;
  // How many this rank is a member of.
  int member_count() const { return static_cast<int>(AsMember().size()); }

 private:
  std::vector<SetPointer> AsMember() const;
  absl::StatusOr<std::vector<int>> CheckRanks(absl::Span<const int32_t> ranks, int world) const;
  SetPointer FindByRanks(const std::vector<int>& ranks) const;
  int FreeRegion() const;  // -1: none
  absl::StatusOr<SetPointer> Global() const;
  absl::Status Make(ProcessSet* set) const;
  bool TakeJoinTurn();
  void EndJoinTurn();
  friend class JoinTurn;
  // member_sets.cc
  friend class MemberAgreement;
  absl::StatusOr<std::shared_ptr<ProcessSet>> ReserveMembers(const ProcessSet& global,
                                                             std::vector<int> ranks,
                                                             std::string_view key, int32_t* id);
  bool ReserveChannels(int channels);
  void ReleaseChannels(ProcessSet* set);
  absl::StatusOr<int32_t> NextLed();
  void Release(const ProcessSet& set);
  absl::Status RemoveMembers(const SetPointer& set);
  absl::StatusOr<int32_t> NextId();
  std::string Unknown(int32_t id) const;
  void DropStopped() const;

  // The settings of this epoch. Start writes them while there is no set, so that nobody makes one
  // (Make reads them).
  EngineConfig config_;
  DeviceFactory make_device_;
  Mutex change_mutex_;  // held while a change is agreed and made, and while all sets go
  // Shared by those who make or remove sets that only members know; of those who need to know all
  // sets of this rank. After change_mutex_.
  SharedMutex members_mutex_;
  std::atomic<bool> stopping_{false};  // from Stop to the next Start
  mutable Mutex mutex_;
  std::map<int32_t, SetPointer> sets_ ABSL_GUARDED_BY(mutex_);
  int32_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;  // never goes back within an epoch
  // The keys of sets that only members know, also of those on the way.
  std::set<std::pair<std::vector<int>, std::string>> member_keys_ ABSL_GUARDED_BY(mutex_);
  std::set<int> member_regions_ ABSL_GUARDED_BY(mutex_);
  std::set<int> channels_ ABSL_GUARDED_BY(mutex_);
  int32_t members_led_ ABSL_GUARDED_BY(mutex_) = 0;  // as last_id_
  bool join_turn_ ABSL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<const SetRequests> join_ ABSL_GUARDED_BY(mutex_);  // gone: it is done

  // A thread that is inside has counted itself first and looks at global_ then; Stop takes global_
  // away first and looks at the count then. One of the two therefore sees the other, and the last
  // one out drops what was stopped.
  std::atomic<const ProcessSet*> global_{nullptr};
  mutable std::atomic<int> inside_{0};
  mutable std::atomic<bool> any_stopped_{false};
  mutable std::vector<SetPointer> stopped_ ABSL_GUARDED_BY(mutex_);
};

// A rank has one join at a time. Held from before a join begins until it is submitted.
class JoinTurn {
 public:
  explicit JoinTurn(ProcessSets* sets) : sets_(sets->TakeJoinTurn() ? sets : nullptr) {}
  ~JoinTurn() {
    if (sets_ != nullptr) sets_->EndJoinTurn();
  }
  JoinTurn(const JoinTurn&) = delete;
  JoinTurn& operator=(const JoinTurn&) = delete;

  bool taken() const { return sets_ != nullptr; }  // false: there is a join already

 private:
  ProcessSets* const sets_;
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

}  // namespace hvd
