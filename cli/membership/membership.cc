// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd {
namespace {

constexpr size_t kMostFailures = 5;

}  // namespace

Membership::Membership(int np, const ElasticOptions& options, int stdin_rank)
    : np_(np),
      options_(options),
      stdin_rank_(stdin_rank),
      cooldown_(options.cooldown_least_s, options.cooldown_most_s) {}

void Membership::Settle(double now) {
  deadline_ = std::numeric_limits<double>::infinity();
  if (ended_) return;
  ChooseStaying();
  if (!closed_) ReachAndSpawn(now);
  LookAtLiving(now);
  LookAtLate(now);
  LookForNext(now);
}

// A time that has come needs no waking: what it brings about has been looked at.
void Membership::WakeAt(double when, double now) {
  if (when > now) deadline_ = std::min(deadline_, when);
}

void Membership::Listed(const std::vector<BookHost>& hosts, double now) {
  list_ = hosts;
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
  gone.phase = Host::kGone;
  gone.kept = {};
  for (Member& member : members_) {
    if (member.host == host) member.alive = member.holds_slot = member.stands = false;
  }
  if (failed) {
    FailHost(host, cause, now);
    if (breaks) Break(host, absl::StrCat(gone.name, " lost"), now);
  }
  Settle(now);
}

void Membership::DrainAsked(int host, const std::string& cause, double now) {
  Host& drained = hosts_[host];
  if (drained.phase == Host::kGone) return;
  if (drained.drained && cooldown_.Cools(drained.name, now)) return;
  drained.drained = true;
  const double length = cooldown_.Failed(drained.name, now);
  Say(
      absl::StrFormat("host %s is wanted back (%s): its ranks leave, and it is left alone for "
                      "%g s",
                      drained.name, cause, length));
  Settle(now);
}

void Membership::Stands(uint64_t member, uint64_t after_epoch, double now) {
  if (!Knows(member) || !Of(member).alive) return;
  Member& standing = Of(member);
  if (after_epoch < standing.epoch) return;  // it has yet to hear of the one that it is in
  standing.stands = true;
  if (closed_ && !standing.retired) Retire(member, true, "the job's ranks have begun to end");
  Settle(now);
}

// Where nobody knows which epoch it was, it was the newest.
bool Membership::LeftCurrent(const MemberEnd& end) const {
  return end.left && (end.epoch == 0 || end.epoch >= current_.number);
}

void Membership::Died(uint64_t member, const MemberEnd& end, double now) {
  // The end of one that broke its link before may tell of a commit that is news.
  NoteCommit(end.commit);
  if (!Knows(member) || !Of(member).alive) return;
  Member& dead = Of(member);
  // Its host may have said before that nobody is left there.
  const bool was_in = InCurrent(member) && !LeftCurrent(end);
  dead.alive = dead.stands = false;
  dead.lingers = end.lives;
  if (!dead.retired) {
    if (end.clean()) {
      Close(member, end.what);
    } else if (!closed_) {
      CountDeath(member, end, now);
    }
  }
  if (was_in) Break(dead.host, end.what, now);
  Settle(now);
}

void Membership::Freed(uint64_t member, double now) {
  if (!Knows(member)) return;
  Of(member).holds_slot = false;
  Settle(now);
}

// Hosts that cannot be reached fail as long as the job runs.
void Membership::NoteFailure(std::string text) {
  failures_.push_back(std::move(text));
  if (failures_.size() > kMostFailures) failures_.erase(failures_.begin());
}

// A death that nobody has asked for.
void Membership::CountDeath(uint64_t member, const MemberEnd& end, double now) {
  const Member& dead = Of(member);
  const std::string host = hosts_[dead.host].name;
  NoteFailure(end.what);
  const DeathSeen seen = {host, dead.share, end.code, end.signal, end.out_of_memory, dead.epoch};
  const int members = InCurrent(member) ? static_cast<int>(current_.members.size()) : 1;
  if (end.own && end.known && bug_.Died(seen, list_.size() <= 1, members)) {
    return End(MembershipEnd::kProgramBug, member,
               absl::StrCat("the program fails by itself: ", end.what,
                            ", as another did before, and no commit came in between"));
  }
  if (!budget_.Died(host, dead.share)) return;
  Say(
      absl::StrFormat("host %s: share %d is left out: %d ranks have died there without a commit "
                      "in between",
                      host, dead.share, ShareBudget::kDeaths));
  const auto listed = std::find_if(list_.begin(), list_.end(),
                                   [&](const BookHost& each) { return each.name == host; });
  if (listed == list_.end() || UsableShares(*listed) > 0) return;
  hosts_[dead.host].drained = true;  // those who still live there do so in no share of ours
  FailHost(dead.host, "the ranks of all its shares have died again and again", now);
}

// The rest of the job is as that of one whose members stay.
void Membership::Close(uint64_t member, const std::string& what) {
  if (closed_) return;
  closed_ = true;
  const bool any = current_.number != 0;
  for (uint64_t other = 1; other <= members_.size(); ++other) {
    if (other == member || !Of(other).alive || Of(other).retired) continue;
    const bool late = any && !InCurrent(other);
    if (late || Of(other).stands) Retire(other, true, what);
  }
}

void Membership::NoteCommit(uint64_t commit) {
  if (commit <= newest_commit_) return;
  newest_commit_ = commit;
  budget_.Committed();
  bug_.Committed();
}

void Membership::Retire(uint64_t member, bool removed, const std::string& cause) {
  Of(member).retired = true;
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
