// SPDX-License-Identifier: Apache-2.0
// Membership's part for members' ends: which are the job's end, which are failures, and what too
// many of these bring about.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/membership/membership.h"

namespace hvd {
namespace {

constexpr size_t kMostFailures = 5;

}  // namespace

// Whoever ends with code 0 has done its work, or has given up where the others have not: what these
// do says which.
void Membership::LookAtEnded(double now) {
  if (closed_ || ended_ || ended_well_.empty()) return;
  if (AllEndedWell()) return Close();
  std::vector<std::pair<uint64_t, MemberEnd>> lost;
  for (const auto& [member, end] : ended_well_) {
    if (IsLost(member)) lost.emplace_back(member, end);
  }
  for (auto& [member, end] : lost) {
    ended_well_.erase(member);
    if (!IsMissed(member)) continue;
    absl::StrAppend(&end.what, " while other ranks went on");
    if (InCurrent(member)) AddCause({Cause::kEnd, end.what});
    if (!ended_) CountDeath(member, end, now);
  }
}

// Somebody waits for an epoch that it was to be in, or has failed where it was done.
bool Membership::IsLost(uint64_t ended) const {
  if (current_.number == 0) return AnyStands();
  if (!InCurrent(ended) || !current_.started) return true;
  return std::any_of(current_.members.begin(), current_.members.end(), [this](uint64_t number) {
    const Member& member = Of(number);
    const bool let_go = member.retired && !member.given_up;
    const bool failed = !member.alive && !let_go && ended_well_.count(number) == 0;
    return failed || (member.alive && member.stands);
  });
}

// Whether others could not go on without this member, which is lost. If one of the others has
// failed by itself, this one has done what it was to do, and does it again.
bool Membership::IsMissed(uint64_t ended) const {
  if (!InCurrent(ended) || !current_.started) return true;
  return std::any_of(current_.members.begin(), current_.members.end(), [this](uint64_t number) {
    return Of(number).fell || (Of(number).alive && Of(number).stands);
  });
}

bool Membership::AnyStands() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.alive && member.stands; });
}

// A program that never calls hvd_init ends well, too, once it has run -np times.
bool Membership::AllEndedWell() const {
  if (current_.number == 0) {
    const bool any_lives = std::any_of(members_.begin(), members_.end(),
                                       [](const Member& member) { return member.alive; });
    return !any_lives && ended_well_.size() >= static_cast<size_t>(np_);
  }
  if (!current_.started) return false;
  return std::all_of(current_.members.begin(), current_.members.end(), [this](uint64_t number) {
    const Member& member = Of(number);
    const bool let_go = member.retired && !member.given_up;
    return ended_well_.count(number) != 0 || (!member.alive && let_go);
  });
}

// Whoever was still to come has nothing to do.
void Membership::Close() {
  closed_ = true;
  for (uint64_t member = 1; member <= members_.size(); ++member) {
    if (!Of(member).alive || Of(member).retired) continue;
    Retire(member, true, "the job's ranks have come to their end");
  }
}

// Hosts that cannot be reached fail as long as the job runs.
void Membership::NoteFailure(std::string text) {
  failures_.push_back(std::move(text));
  if (failures_.size() > kMostFailures) failures_.erase(failures_.begin());
}

// A death that nobody has asked for.
void Membership::CountDeath(uint64_t member, const MemberEnd& end, double now) {
  const Member& dead = Of(member);
  const std::string& host = hosts_[dead.host].name;
  NoteFailure(end.what);
  const DeathSeen seen = {host, dead.share, end.code, end.signal, end.out_of_memory, dead.epoch};
  if (IsBug(seen, member, end)) {
    return End(MembershipEnd::kProgramBug, member,
               absl::StrCat("the program fails by itself: ", end.what,
                            ", as another did before, and the job got no further in between"));
  }
  const bool outside = ComesFromOutside(seen) || !end.known;
  if (!outside && NoteFailedStart(member, end, now)) return;
  if (!budget_.Died(host, dead.share, outside, now)) return;
  culprit_ = {member, outside, end.what};
  LeaveShareOut(member,
                absl::StrFormat("%d ranks have died there, and the job got no further in between; "
                                "the last: %s",
                                ShareBudget::kDeaths, end.what),
                now);
}

// One that cannot begin where others train is its share's affair; while nobody has begun it may be
// the program that cannot.
bool Membership::IsBug(const DeathSeen& seen, uint64_t member, const MemberEnd& end) {
  if (!end.own || !end.known) return false;
  if (seen.epoch == 0) return history_.empty() && bug_.Died(seen, np_);
  return bug_.Died(seen, InCurrent(member) ? static_cast<int>(current_.members.size()) : 1);
}

// Where ranks are missing since one fails each time, that one is to blame.
void Membership::EndTooFew(const std::string& text) {
  if (culprit_.member == 0) return End(MembershipEnd::kTooFew, 0, text);
  const std::string why = absl::StrFormat(
      "%s, as %d others did in its place, and the job got no further in between; %s", culprit_.what,
      ShareBudget::kDeaths - 1, text);
  if (culprit_.outside) return End(MembershipEnd::kTooFew, culprit_.member, why);
  End(MembershipEnd::kProgramBug, culprit_.member,
      absl::StrCat("the program fails by itself: ", why));
}

}  // namespace hvd
