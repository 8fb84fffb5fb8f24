// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd {
Membership::Membership(int np, const ElasticOptions& options, int stdin_rank)
    : np_(np),
      options_(options),
      stdin_rank_(stdin_rank),
      cooldown_(options.cooldown_least_s, options.cooldown_most_s) {}

void Membership::Settle(double now) {
  deadline_ = std::numeric_limits<double>::infinity();
  LookAtEnded(now);
  if (ended_) return;
  ChooseStaying();
  JudgeLinks();
  // Where ranks have begun to end, nobody new is of use unless the others go on.
  if (!closed_ && (ended_well_.empty() || history_.empty())) ReachAndSpawn(now);
  LookAtLiving(now);
  LookAtLate(now);
  LookAtUncome(now);
  if (ended_) return;
  LookForNext(now);
  SayKept();
}

// A time that has come needs no waking: what it brings about has been looked at.
void Membership::WakeAt(double when, double now) {
  if (when > now) deadline_ = std::min(deadline_, when);
}

void Membership::Listed(const std::vector<BookHost>& hosts, double now) {
  list_ = hosts;
  ForgiveUnlisted();
  Settle(now);
}

void Membership::HostReady(int host, double now) {
  if (hosts_[host].phase == Host::kReaching) hosts_[host].phase = Host::kReady;
  Settle(now);
}

void Membership::HostGone(int host, const std::string& cause, double now) {
  Host& gone = hosts_[host];
  if (gone.phase == Host::kGone) return;
  const bool failed = gone.phase != Host::kStopping;
  const bool in_epoch =
      std::find(current_.hosts.begin(), current_.hosts.end(), host) != current_.hosts.end();
  const bool breaks = in_epoch && !AllQuiet();
  current_.lost_any |= breaks;
  gone.phase = Host::kGone;
  gone.kept = {};
  for (Member& member : members_) {
    if (member.host == host) member.alive = member.holds_slot = member.stands = false;
  }
  if (failed) {
    FailHost(host, cause, now);
    if (breaks) Break(host, {Cause::kEnd, absl::StrCat(gone.name, " lost")}, now);
  }
  Settle(now);
}

void Membership::DrainAsked(int host, const std::string& cause, double now) {
  Host& drained = hosts_[host];
  if (drained.phase == Host::kGone) return;
  if (drained.drained && cooldown_.Cools(drained.name, now)) return;
  drained.drained = true;
  const double length = cooldown_.Failed(drained.name, now);
  ChooseStaying();
  const bool leave = std::none_of(kept_.begin(), kept_.end(),
                                  [&](uint64_t member) { return Of(member).host == host; });
  Say(absl::StrFormat("host %s is wanted back (%s): %sit is left alone for %g s", drained.name,
                      cause, leave ? "its ranks leave, and " : "", length));
  Settle(now);
}

void Membership::Stands(uint64_t member, uint64_t after_epoch, double now) {
  if (!Knows(member) || !Of(member).alive) return;
  Member& standing = Of(member);
  if (after_epoch < standing.epoch) return;  // it has yet to hear of the one that it is in
  standing.stands = true;
  if (first_stood_at_ < 0) first_stood_at_ = now;
  if (closed_ && !standing.retired) Retire(member, true, "the job's ranks have begun to end");
  Settle(now);
}

// Where nobody knows which epoch it was, it was the newest.
bool Membership::LeftCurrent(const MemberEnd& end) const {
  return end.left && (end.epoch == 0 || end.epoch >= current_.number);
}

void Membership::Died(uint64_t member, const MemberEnd& end, double now) {
  // The end of one that broke its link before may tell of a commit that is news.
  NoteCommit(end.kept);
  if (!Knows(member) || !Of(member).alive) return;
  Member& dead = Of(member);
  // Its host may have said before that nobody is left there.
  const bool was_in = InCurrent(member) && !LeftCurrent(end);
  NoteKept(dead.host, end.kept.newest);
  current_.lost_any |= was_in;
  dead.alive = dead.stands = false;
  dead.lingers = end.lives;
  dead.fell = dead.given_up || (!end.clean() && !end.own);
  if (!dead.retired && !closed_) {
    if (end.clean()) {
      ended_well_[member] = end;
    } else {
      CountDeath(member, end, now);
    }
  }
  Cause cause = {end.own ? Cause::kEnd : Cause::kFollows, end.what};
  if (end.clean()) cause.order = Cause::kWord;
  // A member that leaves before it dies ends the epoch by leaving, which says less.
  if (InCurrent(member) && !end.clean() && !dead.retired) AddCause(cause);
  // Why one was ended, where that broke the epoch, has been told.
  if (was_in && !(dead.retired && current_.broke)) Break(dead.host, cause, now);
  Settle(now);
}

void Membership::Freed(uint64_t member, double now) {
  if (!Knows(member)) return;
  Of(member).holds_slot = false;
  Settle(now);
}

void Membership::NoteCommit(const KeptCommits& kept) {
  newest_commit_ = std::max(newest_commit_, kept.newest);
  if (!progress_.Reached(kept.steps, kept.place)) return;
  budget_.GetsOn();
  bug_.GetsOn();
  culprit_ = Culprit();
}

void Membership::Retire(uint64_t member, bool removed, const std::string& cause) {
  Of(member).retired = true;
  Of(member).given_up = !removed;
  staying_.erase(member);
  MembershipAction action = {MembershipAction::kRetire, Of(member).host, cause, member};
  action.removed = removed;
  actions_.push_back(std::move(action));
}

bool Membership::InCurrent(uint64_t member) const {
  return std::find(current_.members.begin(), current_.members.end(), member) !=
         current_.members.end();
}

}  // namespace hvd
