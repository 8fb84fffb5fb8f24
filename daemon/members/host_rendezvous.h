// SPDX-License-Identifier: Apache-2.0
// The rendezvous of one host's members, epoch by epoch: what follows when a member joins, gives an
// address, is ready, leaves or is gone, and when the driver speaks. The driver proposes the epochs;
// a member gets the next that it is in. A member is known by its slot. Pure: what happened in, what
// to do out.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/members/attendance.h"
#include "daemon/members/epoch_action.h"
#include "daemon/members/epoch_plan.h"

namespace hvd::daemon {

class HostRendezvous {
 public:
  // `elastic`: members come and go, and slots are used again.
  explicit HostRendezvous(int slots, bool elastic = false);

  // Who has been where.
  const Attendance& attendance() const { return attendance_; }

  // The driver's proposals come in the order of their numbers.
  EpochActions Propose(EpochPlan plan);
  EpochActions Join(int slot);
  // `slot` has joined, has given no address, and takes its join back: it may join again later.
  EpochActions Withdraw(int slot, uint64_t epoch);
  // `bytes` of the host memory are what the rank's host takes at first.
  EpochActions Address(int slot, uint64_t epoch, std::string address, uint64_t bytes);
  EpochActions Ready(int slot, uint64_t epoch);
  EpochActions Leave(int slot, uint64_t epoch);
  // `slot` will take no further part in any epoch that it has not left. Elastic, `lives`: its
  // process has not ended, and may write into what it has mapped: its epochs are not quiet yet.
  EpochActions Gone(int slot, const std::string& cause, bool lives = false);
  // `slot` has left its aborted epoch without a word; it may come to the next.
  EpochActions Abandon(int slot);
  // Elastic: the member in `slot` is in no later epoch.
  EpochActions Remove(int slot, const std::string& cause);
  // Elastic: another member is to come to `slot`. REQUIRES: the one before is gone.
  void Reset(int slot) { attendance_.Reset(slot); }
  // Nobody speaks for `slot`, which waits for no epoch any more.
  void StandsNoMore(int slot) { attendance_.member(slot).standing = false; }
  // A new process speaks for `slot`.
  void Back(int slot) { attendance_.member(slot).gone.clear(); }

  EpochActions TableCame(uint64_t epoch);
  EpochActions GoCame(uint64_t epoch);
  // 0: whichever is current. Ranks that join it later are refused with the same cause.
  EpochActions Abort(uint64_t epoch, const std::string& cause);
  // Aborts all, and every epoch to come.
  EpochActions Stop(const std::string& cause);
  // No epoch begins any more. One that all members of this host run goes on, until one is gone.
  EpochActions Close(const std::string& cause);

 private:
  EpochActions Enter(int slot, uint64_t number);
  // Null: it is over, not known, or aborted.
  LocalEpoch* Live(uint64_t number);
  bool IsAborted(uint64_t number) const;
  void AbortIfLacking(uint64_t number, EpochActions* actions, int but = -1);
  void AbortCurrent(const std::string& cause, EpochActions* actions);
  void AbortOne(uint64_t number, const std::string& cause, EpochActions* actions);
  void RefuseStanding(EpochActions* actions);
  std::string BehindStop(const std::string& cause) const;
  void DisposeIfUnused(uint64_t number, EpochActions* actions);
  void TellQuiet(uint64_t number, EpochActions* actions);

  const bool elastic_;
  Attendance attendance_;
};

}  // namespace hvd::daemon
