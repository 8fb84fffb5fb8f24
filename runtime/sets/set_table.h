// SPDX-License-Identifier: Apache-2.0
// The process sets that this rank knows in an epoch, and what they have of it that no other set
// has: numbers, places in its memory, channels.
//
// Threads: any. Nothing waits while its mutex is held.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/sets/member_numbers.h"
#include "runtime/sets/process_set.h"

namespace hvd::rt {

class SetTable {
 public:
  // A new epoch: the global set alone.
  void Start(SetPointer global);
  // Returns all of them; there are none any more.
  std::vector<SetPointer> TakeAll();

  SetPointer Find(int32_t id) const;  // null: there is none
  // Of those that all ranks know; null: there is none.
  SetPointer FindByRanks(const std::vector<int>& ranks) const;
  // Returns those that this rank is a member of; the global one first, if there are any.
  std::vector<SetPointer> AsMember() const;
  std::vector<int32_t> ids() const;
  // Says that there is no such set, and why.
  std::string Unknown(int32_t id) const;
  void Insert(SetPointer set);
  void Erase(int32_t id);

  // ---- sets that all ranks know ----
  int FreeRegion() const;  // -1: none
  absl::StatusOr<int32_t> NextId();

  // ---- sets that only their members know ----
  // Reserves the key of a set that is to be made, and its place in the page: 0 when there is none
  // left. AlreadyExists: another has the key; *id is its number, if it is made.
  absl::Status Reserve(ProcessSet* set, int32_t* id);
  bool ReserveChannels(int channels);
  void ReleaseChannels(ProcessSet* set);
  absl::StatusOr<int32_t> NextLed();
  // It was not made, or is removed.
  void Release(const ProcessSet& set);
  // It is made: others find it.
  void Publish(const SetPointer& set);
  // It is to be removed: its key stays reserved. False: it is removed already.
  bool Withdraw(const ProcessSet& set);

 private:
  mutable Mutex mutex_;
  std::map<int32_t, SetPointer> sets_ ABSL_GUARDED_BY(mutex_);
  int32_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;  // never goes back within an epoch
  MemberNumbers members_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
