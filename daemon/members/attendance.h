// SPDX-License-Identifier: Apache-2.0
// Who of this host has been in which epoch: the epochs that are not over, and what is known of the
// member in each slot. Pure: it keeps the facts, and forgets what nobody can ask for any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/members/local_epoch.h"

namespace hvd::daemon {

// The member in a slot, across its epochs.
struct Attendant {
  // The newest proposal that it is in: which rank it is, or will be. Null before the first.
  std::shared_ptr<const EpochPlan> newest_plan;
  bool standing = false;      // waits for a proposal
  uint64_t last_epoch = 0;    // its newest; 0: none
  uint64_t epoch_before = 0;  // the one before the last
  uint64_t refusing = 0;      // the newest epoch that was over when it asked
  std::string gone;           // why; empty: it is there
  bool broke = false;         // went away inside an epoch
  bool refused = false;       // of the newest epoch that it asked for, or waited for
  std::string removed;        // why; empty: it is not

  // The newest epoch that has held or refused it.
  uint64_t newest() const { return std::max(last_epoch, refusing); }
};

class Attendance {
 public:
  // `elastic`: members come and go, and slots are used again.
  Attendance(int slots, bool elastic) : elastic_(elastic), members_(slots) {}

  int slots() const { return static_cast<int>(members_.size()); }
  Attendant& member(int slot) { return members_[slot]; }
  const Attendant& member(int slot) const { return members_[slot]; }

  // The epoch is made where it is not known, as its abort may come before its proposal.
  LocalEpoch& At(uint64_t number) { return epochs_.try_emplace(number, slots()).first->second; }
  // Null: it has not been heard of, or is over.
  LocalEpoch* Find(uint64_t number);
  const LocalEpoch* Find(uint64_t number) const;
  std::vector<uint64_t> Numbers() const;  // of the epochs, in their order
  // The newest that any member has entered.
  uint64_t NewestEntered() const;
  // The next proposed epoch that the member is in; 0: there is none.
  uint64_t NextFor(int slot) const;
  void Enter(int slot, uint64_t number);
  // Another member comes to the slot. Epochs that list it mean the member before.
  void Reset(int slot);
  void Forget(uint64_t number) { epochs_.erase(number); }
  // Epochs that have refused, or held, every member.
  void ForgetRefusing();

  // No epoch begins any more.
  void Close(const std::string& cause) { closed_ = cause; }
  const std::string& closed() const { return closed_; }  // why; empty: epochs begin

  // Null: it has not been proposed, or is over.
  const EpochPlan* plan(uint64_t number) const;
  const EpochPlan* newest_plan(int slot) const { return members_[slot].newest_plan.get(); }
  bool in_epoch(int slot) const;
  // … that has not been aborted.
  bool in_live_epoch(int slot) const;
  bool joined_ever(int slot) const { return members_[slot].last_epoch != 0; }
  // The newest epoch of `slot`, 0: none; it left that one.
  uint64_t last_epoch(int slot) const { return members_[slot].last_epoch; }
  bool left(int slot) const;
  // An abort or a stop had reached `slot`: of its newest epoch, or by a refused join. It knows
  // nothing of an epoch that it never asked for.
  bool after_abort(int slot) const;
  bool removed(int slot) const { return !members_[slot].removed.empty(); }
  // It asked for an epoch, or waited for its start, and was told that there will be none.
  bool refused(int slot) const { return members_[slot].refused; }

 private:
  bool NeverAsks(const Attendant& member) const;

  const bool elastic_;
  std::map<uint64_t, LocalEpoch> epochs_;
  std::vector<Attendant> members_;  // by slot
  std::string closed_;
};

}  // namespace hvd::daemon
