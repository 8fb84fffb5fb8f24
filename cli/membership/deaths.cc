// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/deaths.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd::cli {

void Deaths::Count(uint64_t member, const MemberEnd& end, double now) {
  const RosterMember& dead = parts_.roster->Of(member);
  const std::string& host = parts_.roster->host(dead.host).name;
  parts_.wants->NoteFailure(end.what);
  const DeathSeen seen = {host, dead.share, end.code, end.signal, end.out_of_memory, dead.epoch};
  if (IsBug(seen, member, end)) {
    return parts_.wants->End(
        MembershipEnd::kProgramBug, member,
        {absl::StrCat("the program fails by itself: ", end.what,
                      ", as another did before, and the job got no further in between")});
  }
  const bool outside = ComesFromOutside(seen) || !end.known;
  if (!outside && NoteFailedStart(member, end, now)) return;
  if (!parts_.shares->Died(dead, outside, now)) return;
  culprit_ = {member, outside, end.what};
  parts_.shares->LeaveOut(
      member,
      absl::StrFormat("%d ranks have died there, and the job got no further in between; the last: "
                      "%s",
                      ShareBudget::kDeaths, end.what),
      now);
}

void Deaths::NoteCommit(const KeptCommits& kept) {
  if (!progress_.Reached(kept.steps, kept.place)) return;
  parts_.shares->GetsOn();
  bug_.GetsOn();
  culprit_ = Culprit();
}

// One that cannot begin where others train is its share's affair; while nobody has begun it may be
// the program that cannot.
bool Deaths::IsBug(const DeathSeen& seen, uint64_t member, const MemberEnd& end) {
  if (!end.own || !end.known) return false;
  const Epochs& epochs = *parts_.epochs;
  if (seen.epoch == 0) return epochs.history().empty() && bug_.Died(seen, np_);
  const size_t members = epochs.Has(member) ? epochs.current().members.size() : 1;
  return bug_.Died(seen, static_cast<int>(members));
}

// While no host is known to work, it may be the program: one failure does not tell.
bool Deaths::MayBeTheProgram(int host) {
  const auto& hosts = parts_.roster->hosts();
  const bool any_works =
      std::any_of(hosts.begin(), hosts.end(), [](const RosterHost& each) { return each.proven; });
  return !any_works && ++parts_.roster->host(host).failed_starts < kFailedStarts;
}

// True: nobody is started there for now. Commits of others do not make up for it: each of these
// starts has cost them an epoch.
bool Deaths::NoteFailedStart(uint64_t member, const MemberEnd& end, double now) {
  const RosterMember& dead = parts_.roster->Of(member);
  if (dead.proven || !end.own) return false;
  const int host = dead.host;
  const auto& members = parts_.roster->members();
  const bool others_live = std::any_of(members.begin(), members.end(), [host](const auto& each) {
    return each.alive && each.host != host;
  });
  const bool whole = !parts_.roster->host(host).proven;
  if (whole && parts_.roster->host(host).drained) return true;
  const bool tells = !MayBeTheProgram(host);
  if (whole && !(others_live && tells)) return false;
  const int times = parts_.shares->CountFailedStart(dead);
  const std::string why = absl::StrFormat("%s before it had a part in any commit (time %d of %d)",
                                          end.what, times, kFailedStarts);
  if (!whole && times < kFailedStarts) return false;
  if (times >= kFailedStarts) culprit_ = {member, false, end.what};
  if (!whole) {
    parts_.shares->LeaveOut(member, why, now);
    return true;
  }
  parts_.roster->host(host).drained = true;
  times < kFailedStarts ? parts_.shares->FailHost(host, why, now)
                        : parts_.shares->LeaveHostOut(host, why);
  return true;
}

void Deaths::EndTooFew(const std::string& text) {
  Wants& wants = *parts_.wants;
  if (culprit_.member == 0) return wants.End(MembershipEnd::kTooFew, 0, {text});
  const std::string why = absl::StrFormat(
      "%s, as %d others did in its place, and the job got no further in between; %s", culprit_.what,
      ShareBudget::kDeaths - 1, text);
  if (culprit_.outside) return wants.End(MembershipEnd::kTooFew, culprit_.member, {why});
  wants.End(MembershipEnd::kProgramBug, culprit_.member,
            {absl::StrCat("the program fails by itself: ", why)});
}

void Deaths::EndWithoutState() {
  const uint64_t newest = parts_.epochs->newest_commit();
  const std::string text =
      newest > 0
          ? absl::StrFormat(
                "every host that had what was committed (commit %d) is lost or left out", newest)
          : "every host of the last epoch is lost, and with them what may have been committed";
  // A host that is left out since the program fails there each time is lost by the program.
  if (culprit_.member != 0 && !culprit_.outside) return EndTooFew(text);
  parts_.wants->End(MembershipEnd::kStateLost, 0, {text});
}

}  // namespace hvd::cli
