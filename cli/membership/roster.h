// SPDX-License-Identifier: Apache-2.0
// The hosts and members that an elastic job ever had, and how each is now. Numbers are never used
// again. Passive: the other parts of the membership note here what becomes of one. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/membership/actions.h"

namespace hvd::cli {

struct RosterHost {
  enum Phase { kReaching, kReady, kStopping, kGone } phase = kReaching;
  std::string name;
  bool drained = false;
  bool proven = false;    // its ranks have had a part in a commit
  int failed_starts = 0;  // ranks that had none
  int shares = 0;         // as it was told last
  int next_slot = 0;      // to be looked at first for the next member
  KeptCommits kept = {};  // what it had complete when the last epoch had ended
};

struct RosterMember {
  int host = 0;
  int slot = 0;
  int share = 0;
  bool alive = true;
  bool holds_slot = true;
  bool lingers = false;  // it is no rank any more, and its process has not ended
  bool stands = false;
  bool retired = false;
  bool given_up = false;  // retired since others waited for it in vain: that is a failure
  bool fell = false;      // it has failed since its epoch was over
  bool proven = false;    // it has had a part in a commit
  double born_at = 0;
  int last_rank = -1;  // in the last epoch that started; -1: it was not in it
  uint64_t epoch = 0;  // the newest that was proposed with it

  bool let_go() const { return retired && !given_up; }
  // It has been started, and has not come to any epoch.
  bool HasNotCome() const { return alive && !retired && !stands && epoch == 0; }
};

class Roster {
 public:
  using EndedWell = std::map<uint64_t, MemberEnd>;

  // Hosts, by number.
  int AddHost(const std::string& name);
  RosterHost& host(int host) { return hosts_[host]; }
  const RosterHost& host(int host) const { return hosts_[host]; }
  const std::vector<RosterHost>& hosts() const { return hosts_; }
  // The host of this name that is not gone. -1: there is none.
  int LiveHost(const std::string& name) const;
  // Nobody lives there any more.
  void LoseHost(int host);
  // The first free one behind the one that was taken last: what a slot's worker has said may still
  // be under way when it is free. -1 while old output still comes from all of them.
  int FreeSlot(int host) const;
  bool ShareFree(int host, int share) const;

  // Members, by number from 1. Returns the number.
  uint64_t Add(const RosterMember& member);
  bool Knows(uint64_t member) const { return member > 0 && member <= members_.size(); }
  RosterMember& Of(uint64_t member) { return members_[member - 1]; }
  const RosterMember& Of(uint64_t member) const { return members_[member - 1]; }
  RosterHost& HostOf(uint64_t member) { return hosts_[Of(member).host]; }
  const RosterHost& HostOf(uint64_t member) const { return hosts_[Of(member).host]; }
  const std::vector<RosterMember>& members() const { return members_; }  // by number - 1
  uint64_t newest() const { return members_.size(); }
  bool AnyStands() const;
  bool AnyLives() const;
  // Of the last epoch that has started: who was which rank.
  void NumberRanks(const std::vector<uint64_t>& by_rank);

  // Members that have ended with code 0, while nobody knows yet whether others need them.
  EndedWell& ended_well() { return ended_well_; }
  const EndedWell& ended_well() const { return ended_well_; }

 private:
  std::vector<RosterHost> hosts_;
  std::vector<RosterMember> members_;
  EndedWell ended_well_;
};

}  // namespace hvd::cli
