// SPDX-License-Identifier: Apache-2.0
// What it means that a member's process or its link has ended: whether others are to blame, which
// epoch it ends, and what the driver is told. Knows when the last member has ended. Belongs to the
// links thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "daemon/link_b/link_parts.h"
#include "daemon/members/rank_death.h"

namespace hvd::daemon {

class MemberEnds {
 public:
  // `on_last`: every member has ended, and none is to come any more.
  MemberEnds(LinkParts parts, std::function<void()> on_last)
      : parts_(std::move(parts)), on_last_(std::move(on_last)) {}

  // A member's own process has ended. Returns what is known of it, after the abort that its end
  // may cause.
  LinkFacts ProcessEnded(const RankDeath& death);
  // `how` a living process has lost its link: words behind the rank's name.
  void LinkEnded(const LinkPeer& peer, const char* how);
  // Reports a failed init, unless others have ended the rank's epoch, which is no fault of its own.
  // Ranks that have met it in an epoch wait for it.
  void InitFailed(int slot, const std::string& why);
  // No member is to come any more, by a stop.
  void Close();

 private:
  LinkFacts FactsOf(int slot);
  void LookForLast();
  void Lost(const LinkPeer& peer, const char* how);
  void LostOutside(int slot);
  void LostAfterAbort(const LinkPeer& peer, const char* how);
  void GaveUp(int slot, const char* how);
  void Broke(int slot, const std::string& how);
  void LostWorker(const LinkPeer& peer, std::optional<int> status);
  void DiedSomehow(int slot);
  void TellBroke(int slot, v1::RankBroke broke);

  const Attendance& book() const { return parts_.epochs->book(); }
  std::string Name(int slot) const { return parts_.epochs->members().Name(slot); }
  WorkerSlot& worker(int slot) { return (*parts_.workers)[slot]; }

  const LinkParts parts_;
  const std::function<void()> on_last_;
  bool last_told_ = false;
  bool closing_ = false;  // no member is to come any more: by a stop, or by one that has ended well
};

}  // namespace hvd::daemon
