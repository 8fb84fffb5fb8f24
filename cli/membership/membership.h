// SPDX-License-Identifier: Apache-2.0
// Who works for an elastic job: it is told of hosts, members and the time, and answers with what is
// to be done. It takes what it is told to the part whose it is, and lets all parts look at the
// outcome, in one order. Pure: no clock (`now` is seconds of any monotonic clock), one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/front/words/run_options.h"
#include "cli/membership/actions.h"
#include "cli/membership/deaths.h"
#include "cli/membership/epochs.h"
#include "cli/membership/late_watch.h"
#include "cli/membership/link_judge.h"
#include "cli/membership/next_watch.h"
#include "cli/membership/places.h"
#include "cli/membership/roster.h"
#include "cli/membership/shares.h"
#include "cli/membership/staying.h"
#include "cli/membership/wants.h"
#include "cli/membership/well_ended.h"

namespace hvd::cli {

class Membership {
 public:
  // `np`: so many ranks make the first epoch. `stdin_rank`: as in RunOptions.
  Membership(int np, const ElasticOptions& options, int stdin_rank);

  // Hosts. They are numbered from 0 in the order of kReach, and a number is never used again.
  void Listed(const std::vector<BookHost>& hosts, double now);  // all of them, oldest first
  void HostReady(int host, double now);                         // members may be started there
  void HostGone(int host, const std::string& cause, double now);
  void DrainAsked(int host, const std::string& cause, double now);

  // Members.
  void Stands(uint64_t member, uint64_t after_epoch, double now);
  void Died(uint64_t member, const MemberEnd& end, double now);
  // Its whole end has been told, and its output: its slot may be used again.
  void Freed(uint64_t member, double now);

  // Epochs.
  void Broke(int host, uint64_t epoch, const std::string& cause, double now);  // as `host` says
  // Nothing passes between these hosts, as one of them says: `why`.
  void Unreached(int host, int other, uint64_t epoch, const std::string& why);
  // The others have waited for this one for longer than the person allows: it is replaced.
  void Stalled(uint64_t member, const std::string& why, double now);
  std::vector<AwaitedMember> WhoIsAwaited() const;
  // The ranks of the host have met in the epoch, and are ready to begin.
  void Ready(int host, uint64_t epoch);
  void Quiet(int host, uint64_t epoch, const KeptCommits& kept, double now);
  void Started(uint64_t epoch, double now);

  void Tick(double now) { Settle(now); }
  double deadline() const { return wants_.deadline(); }  // when Tick is due

  std::vector<MembershipAction> TakeActions() { return wants_.Take(); }
  // Nobody is added or replaced any more: the members of the last epoch have ended well together.
  bool closed() const { return ended_.closed(); }
  bool IsOver(uint64_t epoch) const { return epochs_.IsOver(epoch); }
  uint64_t epoch() const { return epochs_.current().number; }  // the newest proposed; 0: none yet
  const std::vector<EpochRecord>& history() const { return epochs_.history(); }  // that started

 private:
  void Settle(double now);
  void JudgeLinks();
  void NoteCommit(const KeptCommits& kept);
  void NoteDeath(uint64_t member, const MemberEnd& end, double now);

  const ElasticOptions options_;
  Wants wants_;
  Roster roster_;
  Epochs epochs_;
  Shares shares_;
  Staying staying_;
  Deaths deaths_;
  LinkJudge links_;
  Places places_;
  WellEnded ended_;
  LateWatch late_;
  NextWatch next_;
};

}  // namespace hvd::cli
