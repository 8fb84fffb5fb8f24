// SPDX-License-Identifier: Apache-2.0
// The epochs of an elastic job: the newest one's members and way, what ended it, and those that
// have started. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/membership/actions.h"
#include "cli/membership/causes.h"
#include "cli/membership/next_epoch.h"
#include "cli/membership/roster.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

// The newest epoch that was proposed.
struct CurrentEpoch {
  uint64_t number = 0;  // 0: none yet
  std::vector<int> hosts;
  std::vector<uint64_t> members;  // by rank
  std::set<int> quiet;
  uint64_t commit = 0;  // where it resumes
  bool started = false;
  bool broke = false;
  bool announced = false;
  bool rolls_back = false;
  bool has_needy = false;  // some of its members come without the state
  bool lost_any = false;   // a member died in it, or a host was lost
  bool judged = false;     // what its end says of its links has been taken
  bool late_told = false;  // a person knows who holds up the next one
  double announced_at = 0;
  std::set<int> ready;                             // hosts
  std::map<std::pair<int, int>, std::string> cut;  // between these hosts nothing passed: why
  double proposed_at = 0;
  double ended_at = 0;  // when it broke, or was announced to change
  std::string text;     // its ranks and hosts, and why it began
};

class Epochs {
 public:
  // Both outlive it.
  Epochs(Roster* roster, Wants* wants) : roster_(roster), wants_(wants) {}

  const CurrentEpoch& current() const { return current_; }
  CurrentEpoch& current() { return current_; }
  const std::vector<EpochRecord>& history() const { return history_; }  // epochs that started
  // Members and hosts of the last one that started.
  const std::vector<uint64_t>& last_members() const { return last_members_; }
  const std::vector<int>& last_hosts() const { return last_hosts_; }
  // It broke, so that the next one rolls back.
  bool last_broke() const { return last_broke_; }
  Causes& causes() { return causes_; }
  const Causes& causes() const { return causes_; }

  bool Has(uint64_t member) const;
  bool HasHost(int host) const;
  bool IsOver(uint64_t epoch) const { return epoch != current_.number || current_.broke; }
  // The member left it before it ended. Where nobody knows which epoch that was, it was this.
  bool WasLeft(const MemberEnd& end) const;
  // Some rank is in it yet: all may have left by themselves, which breaks nothing.
  bool Runs() const;
  // No host has a rank that goes on.
  bool AllQuiet() const;

  // The way of the newest one.
  void Break(int from_host, const Cause& cause, double now);
  // It ends where the others lose nothing by it.
  void Announce(const std::string& text, double now);
  // Nothing passes between these hosts, as one of them says.
  void Unreached(int host, int other, uint64_t epoch, const std::string& why);
  void Quiet(int host, const KeptCommits& kept);
  void Start(double now);

  // The next one, with these members.
  NextEpoch World(const std::set<uint64_t>& members) const;
  // It is proposed; `text`: why it begins.
  void Adopt(const v1::EpochPropose& propose, const std::string& text, double now);

  void NoteCommit(uint64_t commit) { newest_commit_ = std::max(newest_commit_, commit); }
  uint64_t newest_commit() const { return newest_commit_; }
  // One host of the last epoch would know of every commit that has returned there.
  bool MayBeCommitted() const;
  // Nobody who is still to come could bring what was committed.
  bool NoHostHasState() const;

 private:
  bool UnstartedIsQuiet(int host) const;

  Roster* const roster_;
  Wants* const wants_;
  CurrentEpoch current_;
  std::vector<uint64_t> last_members_;
  std::vector<int> last_hosts_;
  bool last_broke_ = false;
  Causes causes_;  // since the last one started
  std::vector<EpochRecord> history_;
  uint64_t newest_commit_ = 0;
  // When the last started epoch broke, or its change was announced; below 0: it goes on.
  double ended_at_ = -1;
};

}  // namespace hvd::cli
