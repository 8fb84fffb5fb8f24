// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/well_ended.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hvd::cli {

void WellEnded::Look(double now) {
  Roster::EndedWell& ended = parts_.roster->ended_well();
  if (closed_ || parts_.wants->ended() || ended.empty()) return;
  if (AllHave()) return Close();
  std::vector<std::pair<uint64_t, MemberEnd>> lost;
  for (const auto& [member, end] : ended) {
    if (IsLost(member)) lost.emplace_back(member, end);
  }
  for (auto& [member, end] : lost) {
    ended.erase(member);
    if (!IsMissed(member)) continue;
    absl::StrAppend(&end.what, " while other ranks went on");
    if (parts_.epochs->Has(member)) parts_.epochs->causes().Add({Cause::kEnd, end.what});
    if (!parts_.wants->ended()) parts_.deaths->Count(member, end, now);
  }
}

// Somebody waits for an epoch that it was to be in, or has failed where it was done.
bool WellEnded::IsLost(uint64_t ended) const {
  const CurrentEpoch& epoch = parts_.epochs->current();
  if (epoch.number == 0) return parts_.roster->AnyStands();
  if (!parts_.epochs->Has(ended) || !epoch.started) return true;
  return std::any_of(epoch.members.begin(), epoch.members.end(), [this](uint64_t number) {
    const RosterMember& member = parts_.roster->Of(number);
    const bool ended_well = parts_.roster->ended_well().count(number) != 0;
    const bool failed = !member.alive && !member.let_go() && !ended_well;
    return failed || (member.alive && member.stands);
  });
}

// Whether others could not go on without this member, which is lost. If one of the others has
// failed by itself, this one has done what it was to do, and does it again.
bool WellEnded::IsMissed(uint64_t ended) const {
  const CurrentEpoch& epoch = parts_.epochs->current();
  if (!parts_.epochs->Has(ended) || !epoch.started) return true;
  return std::any_of(epoch.members.begin(), epoch.members.end(), [this](uint64_t number) {
    const RosterMember& member = parts_.roster->Of(number);
    return member.fell || (member.alive && member.stands);
  });
}

bool WellEnded::AllHave() const {
  const CurrentEpoch& epoch = parts_.epochs->current();
  const Roster::EndedWell& ended = parts_.roster->ended_well();
  if (epoch.number == 0) {
    return !parts_.roster->AnyLives() && ended.size() >= static_cast<size_t>(np_);
  }
  if (!epoch.started) return false;
  return std::all_of(epoch.members.begin(), epoch.members.end(), [&](uint64_t number) {
    const RosterMember& member = parts_.roster->Of(number);
    return ended.count(number) != 0 || (!member.alive && member.let_go());
  });
}

// Whoever was still to come has nothing to do.
void WellEnded::Close() {
  closed_ = true;
  for (uint64_t member = 1; member <= parts_.roster->newest(); ++member) {
    const RosterMember& left = parts_.roster->Of(member);
    if (!left.alive || left.retired) continue;
    parts_.staying->Retire(member, true, "the job's ranks have come to their end");
  }
}

}  // namespace hvd::cli
