// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/next_watch.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/membership/epoch_words.h"
#include "cli/membership/next_epoch.h"

namespace hvd::cli {
namespace {

// For members that are on their way when one already waits: so long, a change is one and not many.
constexpr double kGatherS = 1;
// A recovery is shorter: a person hears of what takes longer.
constexpr double kSayTooFewS = 5;
constexpr double kNever = -1;

std::string SayHistory(const std::vector<EpochRecord>& history) {
  std::string text = "\n  its epochs:";
  for (const EpochRecord& record : history) absl::StrAppend(&text, "\n    ", SayEpoch(record));
  return text;
}

}  // namespace

// ---- while the newest epoch lives ----

void NextWatch::LookAtLiving(double now) {
  const Epochs& epochs = *parts_.epochs;
  if (!epochs.Runs() || epochs.current().announced || !parts_.roster->ended_well().empty()) return;
  const auto& members = epochs.current().members;
  const bool leaves = std::any_of(members.begin(), members.end(), [this](uint64_t member) {
    return parts_.roster->Of(member).alive && !parts_.staying->Has(member);
  });
  const auto& staying = parts_.staying->members();
  const auto joins = std::count_if(staying.begin(), staying.end(), [&](uint64_t member) {
    return !epochs.Has(member) && parts_.roster->Of(member).stands;
  });
  if (joins == 0) gathers_since_ = kNever;
  if (!leaves && (joins == 0 || GathersStill(static_cast<int>(joins), now))) return;
  gathers_since_ = kNever;
  Change(WhoChanges(), now);
}

bool NextWatch::GathersStill(int standing, double now) {
  int coming = 0;
  for (const uint64_t member : parts_.staying->members()) coming += !parts_.epochs->Has(member);
  const auto& hosts = parts_.roster->hosts();
  const bool reaching = parts_.epochs->history().empty() &&
                        std::any_of(hosts.begin(), hosts.end(), [](const RosterHost& host) {
                          return host.phase == RosterHost::kReaching;
                        });
  if (coming <= standing && !reaching) return false;
  if (gathers_since_ < 0) gathers_since_ = now;
  parts_.wants->WakeAt(gathers_since_ + kGatherS, now);
  return now < gathers_since_ + kGatherS;
}

void NextWatch::Change(const std::string& text, double now) {
  // Newcomers have the state with their first commit, not before.
  const bool now_too = parts_.options->change == MembershipChange::kNow;
  if (now_too && !parts_.epochs->current().has_needy) {
    return parts_.epochs->Break(-1, {Cause::kEnd, text}, now);
  }
  parts_.epochs->Announce(text, now);
}

// ---- once it is over ----

void NextWatch::LookForNext(double now) {
  const bool over = parts_.epochs->AllQuiet();
  LetGo(over);
  if (!over || !parts_.staying->SurvivorsStand()) {
    too_few_since_ = kNever;
    return;
  }
  if (parts_.epochs->NoHostHasState()) return parts_.deaths->EndWithoutState();
  if (!MayPropose(static_cast<int>(parts_.staying->Standing().size()), now)) return;
  const bool needs_state = !parts_.epochs->history().empty() && parts_.epochs->MayBeCommitted();
  if (!needs_state || HasState()) return Propose(now);
  parts_.deaths->EndWithoutState();
}

void NextWatch::LetGo(bool over) {
  for (uint64_t member = 1; member <= parts_.roster->newest(); ++member) {
    const RosterMember& each = parts_.roster->Of(member);
    const bool goes = each.alive && !each.retired && !parts_.staying->Has(member);
    if (goes && (over || !parts_.epochs->Has(member))) {
      parts_.staying->Retire(member, true, "the job has no more use for it");
    }
  }
}

// The first epoch has so many ranks, if all come.
int NextWatch::AllThatMayCome() const { return std::min(np_, parts_.shares->MostThatMayCome()); }

int NextWatch::Needed(int overdue) const {
  const int least = parts_.options->min_np;
  return parts_.epochs->history().empty() ? std::max(least, AllThatMayCome() - overdue) : least;
}

bool NextWatch::MayPropose(int standing, double now) {
  const bool first = parts_.epochs->history().empty();
  const int overdue = first ? parts_.late->CountOverdue(now) : 0;
  const int needed = Needed(overdue);
  if (standing < needed || AwaitsState(now)) {
    WaitForMore(standing, needed, now);
    return false;
  }
  too_few_since_ = kNever;
  if (first) {
    if (standing < AllThatMayCome()) parts_.late->SayBeginsWithout();
    return overdue > 0 || !GathersStill(standing, now);
  }
  if (MayReset()) return true;
  EndByResets();
  return false;
}

bool NextWatch::MayReset() const {
  const int limit = parts_.options->reset_limit;
  return limit < 0 || static_cast<int>(parts_.epochs->history().size()) - 1 < limit;
}

void NextWatch::EndByResets() {
  const std::string why =
      absl::StrFormat("the job would need epoch %d, and --reset-limit %d allows no more",
                      parts_.epochs->current().number + 1, parts_.options->reset_limit);
  parts_.wants->End(MembershipEnd::kResetLimit, 0, {why, SayHistory(parts_.epochs->history())});
}

void NextWatch::WaitForMore(int standing, int needed, double now) {
  gathers_since_ = kNever;
  if (too_few_since_ < 0) {
    too_few_since_ = now;
    too_few_said_ = false;
  }
  const std::string uncome = parts_.late->SayUncome();
  // While all are on their way to hvd_init nobody waits for anybody.
  if (!parts_.late->any_stood() && !uncome.empty()) too_few_since_ = now;
  const double timeout_s = parts_.options->elastic_timeout_s;
  const double until = too_few_since_ + timeout_s;
  parts_.wants->WakeAt(until, now);
  const std::string there = absl::StrFormat("%d of at least %d ranks are there", standing, needed);
  if (std::min(parts_.staying->most(), parts_.shares->MostThatMayCome()) < needed) {
    return parts_.deaths->EndTooFew(
        absl::StrCat(there,
                     ", and no more can come: shares are left out, and the list of hosts stays as "
                     "it is"));
  }
  const std::string lacks = AwaitsState(now) ? ", and none on a host that has what was committed"
                            : uncome.empty() ? ""
                                             : absl::StrCat("; ", uncome);
  if (now < until) return SayWaits(absl::StrCat(there, lacks), now);
  parts_.deaths->EndTooFew(
      absl::StrFormat("%s%s, after --elastic-timeout %g s", there, lacks, timeout_s));
}

void NextWatch::SayWaits(const std::string& what, double now) {
  if (too_few_said_) return;
  // Of hosts others tell.
  if (parts_.epochs->history().empty() && parts_.late->CountOverdue(now) == 0) return;
  parts_.wants->WakeAt(too_few_since_ + kSayTooFewS, now);
  if (now < too_few_since_ + kSayTooFewS) return;
  too_few_said_ = true;
  parts_.wants->Say(absl::StrFormat("%s; more are waited for, up to --elastic-timeout %g s", what,
                                    parts_.options->elastic_timeout_s));
}

// Whether the members that stand have what was committed.
bool NextWatch::HasState() const {
  return hvd::cli::HasState(parts_.epochs->World(parts_.staying->Standing()));
}

// Whether the members that stand lack what was committed, while a member of a host that has it is
// on the way.
bool NextWatch::AwaitsState(double now) const {
  if (parts_.epochs->history().empty() || HasState()) return false;
  const Roster& roster = *parts_.roster;
  const auto comes = [&roster](uint64_t number) {
    return !roster.Of(number).stands && roster.HostOf(number).kept.newest > 0;
  };
  // Another comes to its share as soon as that is free.
  const auto makes_room = [&roster](const RosterMember& member) {
    const bool goes = (member.alive && member.retired) || member.lingers;
    return goes && member.holds_slot && roster.host(member.host).kept.newest > 0;
  };
  const auto& staying = parts_.staying->members();
  const auto& members = roster.members();
  return std::any_of(staying.begin(), staying.end(), comes) ||
         std::any_of(members.begin(), members.end(), makes_room) ||
         parts_.places->WillSpawnAtState(now);
}

void NextWatch::Propose(double now) {
  MembershipAction action = {MembershipAction::kPropose};
  action.propose = ProposeNext(parts_.epochs->World(parts_.staying->Standing()));
  std::vector<std::string> causes = parts_.epochs->causes().Say();
  const std::string changes = WhoChanges();
  if (!changes.empty()) causes.push_back(changes);
  parts_.epochs->Adopt(action.propose, JoinCauses(causes), now);
  gathers_since_ = kNever;
  parts_.wants->WakeAt(now + parts_.options->elastic_timeout_s, now);
  parts_.wants->Add(std::move(action));
}

// Against the last epoch that started, as far as its causes do not say so already.
std::string NextWatch::WhoChanges() const {
  const Epochs& epochs = *parts_.epochs;
  const Roster& roster = *parts_.roster;
  if (epochs.history().empty()) return "";
  std::set<std::string> names, before;
  int joined = 0, left = 0;
  for (const uint64_t number : parts_.staying->members()) {
    if (!roster.Of(number).stands && !epochs.Has(number)) continue;
    names.insert(roster.HostOf(number).name);
    joined += roster.Of(number).last_rank < 0;
  }
  for (const uint64_t number : epochs.last_members()) {
    left += roster.Of(number).alive && !parts_.staying->Has(number);
  }
  for (const int host : epochs.last_hosts()) before.insert(roster.host(host).name);
  std::vector<std::string> words;
  for (const std::string& name : names) {
    if (before.count(name) == 0) words.push_back(absl::StrCat(name, " joined"));
  }
  for (const std::string& name : before) {
    if (names.count(name) == 0 && !epochs.causes().Tell(name)) {
      words.push_back(absl::StrCat(name, " left"));
    }
  }
  const bool untold = epochs.causes().empty();
  if (words.empty() && untold && joined > 0) words.push_back(SayRanks(joined, "joined"));
  if (words.empty() && untold && left > 0) words.push_back(SayRanks(left, "left"));
  return absl::StrJoin(words, ", ");
}

}  // namespace hvd::cli
