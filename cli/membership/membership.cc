// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/membership.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "hostfile/host_item.h"

namespace hvd::cli {

Membership::Membership(int np, const ElasticOptions& options, int stdin_rank)
    : options_(options),
      epochs_(&roster_, &wants_),
      shares_(options_, &roster_, &epochs_, &wants_),
      staying_(options.max_np > 0 ? options.max_np : kMaxRanks,
               {&roster_, &epochs_, &shares_, &wants_}),
      deaths_(np, {&roster_, &epochs_, &shares_, &wants_}),
      links_(&epochs_, &shares_, &roster_),
      places_(stdin_rank, {&roster_, &epochs_, &shares_, &staying_, &wants_}),
      ended_(np, {&roster_, &epochs_, &staying_, &deaths_, &wants_}),
      late_({&options_, &roster_, &epochs_, &staying_, &deaths_, &wants_}),
      next_(np, {&options_, &roster_, &epochs_, &shares_, &staying_, &deaths_, &places_, &late_,
                 &wants_}) {}

void Membership::Settle(double now) {
  wants_.Begin();
  ended_.Look(now);
  if (wants_.ended()) return;
  staying_.Choose();
  if (!closed()) {
    JudgeLinks();
    // Where ranks have begun to end, nobody new is of use unless the others go on.
    if (roster_.ended_well().empty() || history().empty()) places_.ReachAndSpawn(now);
    next_.LookAtLiving(now);
    late_.Look(now);
    if (wants_.ended()) return;
    next_.LookForNext(now);
  }
  staying_.SayKept(closed() || wants_.ended());
}

void Membership::JudgeLinks() {
  const bool over = epochs_.current().started && epochs_.AllQuiet() && staying_.SurvivorsStand();
  if (over && links_.Judge()) staying_.Choose();
}

// ---- hosts ----

void Membership::Listed(const std::vector<BookHost>& hosts, double now) {
  shares_.Listed(hosts);
  Settle(now);
}

void Membership::HostReady(int host, double now) {
  RosterHost& ready = roster_.host(host);
  if (ready.phase == RosterHost::kReaching) ready.phase = RosterHost::kReady;
  Settle(now);
}

void Membership::HostGone(int host, const std::string& cause, double now) {
  const RosterHost& gone = roster_.host(host);
  if (gone.phase == RosterHost::kGone) return;
  const bool failed = gone.phase != RosterHost::kStopping;
  const bool breaks = epochs_.HasHost(host) && !epochs_.AllQuiet();
  epochs_.current().lost_any |= breaks;
  roster_.LoseHost(host);
  if (failed) {
    shares_.FailHost(host, cause, now);
    if (breaks) epochs_.Break(host, {Cause::kEnd, absl::StrCat(gone.name, " lost")}, now);
  }
  Settle(now);
}

void Membership::DrainAsked(int host, const std::string& cause, double now) {
  const RosterHost& drained = roster_.host(host);
  if (drained.phase == RosterHost::kGone) return;
  if (drained.drained && shares_.Cools(drained.name, now)) return;
  const double length = shares_.Drain(host, now);
  staying_.Choose();
  const auto& kept = staying_.kept();
  const bool leave = std::none_of(kept.begin(), kept.end(),
                                  [&](uint64_t member) { return roster_.Of(member).host == host; });
  wants_.Say(absl::StrFormat("host %s is wanted back (%s): %sit is left alone for %g s",
                             drained.name, cause, leave ? "its ranks leave, and " : "", length));
  Settle(now);
}

// ---- members ----

void Membership::Stands(uint64_t member, uint64_t after_epoch, double now) {
  if (!roster_.Knows(member) || !roster_.Of(member).alive) return;
  RosterMember& standing = roster_.Of(member);
  if (after_epoch < standing.epoch) return;  // it has yet to hear of the one that it is in
  standing.stands = true;
  late_.Stood(now);
  if (closed() && !standing.retired) {
    staying_.Retire(member, true, "the job's ranks have begun to end");
  }
  Settle(now);
}

void Membership::Died(uint64_t member, const MemberEnd& end, double now) {
  // The end of one that broke its link before may tell of a commit that is news.
  NoteCommit(end.kept);
  if (!roster_.Knows(member) || !roster_.Of(member).alive) return;
  RosterMember& dead = roster_.Of(member);
  shares_.NoteKept(dead.host, end.kept.newest);
  dead.alive = dead.stands = false;
  dead.lingers = end.lives;
  dead.fell = dead.given_up || (!end.clean() && !end.own);
  NoteDeath(member, end, now);
  Settle(now);
}

void Membership::NoteDeath(uint64_t member, const MemberEnd& end, double now) {
  const RosterMember& dead = roster_.Of(member);
  // Its host may have said before that nobody is left there.
  const bool was_in = epochs_.Has(member) && !epochs_.WasLeft(end);
  epochs_.current().lost_any |= was_in;
  if (!dead.retired && !closed()) {
    if (end.clean()) {
      roster_.ended_well()[member] = end;
    } else {
      deaths_.Count(member, end, now);
    }
  }
  Cause cause = {end.own ? Cause::kEnd : Cause::kFollows, end.what};
  if (end.clean()) cause.order = Cause::kWord;
  // A member that leaves before it dies ends the epoch by leaving, which says less.
  if (epochs_.Has(member) && !end.clean() && !dead.retired) epochs_.causes().Add(cause);
  // Why one was ended, where that broke the epoch, has been told.
  if (was_in && !(dead.retired && epochs_.current().broke)) epochs_.Break(dead.host, cause, now);
}

void Membership::Freed(uint64_t member, double now) {
  if (!roster_.Knows(member)) return;
  roster_.Of(member).holds_slot = false;
  Settle(now);
}

void Membership::NoteCommit(const KeptCommits& kept) {
  epochs_.NoteCommit(kept.newest);
  deaths_.NoteCommit(kept);
}

// It counts as dead of somebody else's doing.
void Membership::Stalled(uint64_t member, const std::string& why, double now) {
  if (!roster_.Knows(member) || closed()) return;
  if (!roster_.Of(member).alive || roster_.Of(member).retired) return;
  epochs_.current().lost_any = true;
  epochs_.Break(-1, {Cause::kEnd, why}, now);
  MemberEnd end;
  end.signal = SIGKILL;
  end.own = end.known = false;
  end.what = why;
  deaths_.Count(member, end, now);
  if (!wants_.ended()) staying_.Retire(member, false, why);
  Settle(now);
}

std::vector<AwaitedMember> Membership::WhoIsAwaited() const {
  if (closed() || epoch() == 0) return {};
  return late_.WhoIsAwaited();
}

// ---- epochs ----

void Membership::Broke(int host, uint64_t epoch, const std::string& cause, double now) {
  if (epoch != epochs_.current().number || epochs_.AllQuiet()) return;
  epochs_.Break(host, {Cause::kWord, cause}, now);
  Settle(now);
}

void Membership::Unreached(int host, int other, uint64_t epoch, const std::string& why) {
  epochs_.Unreached(host, other, epoch, why);
}

void Membership::Ready(int host, uint64_t epoch) {
  if (epoch == epochs_.current().number) epochs_.current().ready.insert(host);
}

void Membership::Quiet(int host, uint64_t epoch, const KeptCommits& kept, double now) {
  const bool gone = roster_.host(host).phase == RosterHost::kGone;
  if (epoch != epochs_.current().number || gone) return;
  epochs_.Quiet(host, kept);
  shares_.NoteKept(host, kept.newest);
  NoteCommit(kept);
  Settle(now);
}

void Membership::Started(uint64_t epoch, double now) {
  if (epoch != epochs_.current().number || epochs_.current().started) return;
  epochs_.Start(now);
  Settle(now);
}

}  // namespace hvd::cli
