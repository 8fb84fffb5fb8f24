// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/epochs.h"

#include <algorithm>

#include "cli/membership/epoch_words.h"

namespace hvd::cli {

bool Epochs::Has(uint64_t member) const {
  const auto& members = current_.members;
  return std::find(members.begin(), members.end(), member) != members.end();
}

bool Epochs::HasHost(int host) const {
  return std::find(current_.hosts.begin(), current_.hosts.end(), host) != current_.hosts.end();
}

bool Epochs::WasLeft(const MemberEnd& end) const {
  return end.left && (end.epoch == 0 || end.epoch >= current_.number);
}

bool Epochs::Runs() const {
  return current_.started && !current_.broke && !AllQuiet() &&
         std::any_of(current_.members.begin(), current_.members.end(),
                     [this](uint64_t member) { return roster_->Of(member).alive; });
}

// A host that is gone has no rank that goes on.
bool Epochs::AllQuiet() const {
  return std::all_of(current_.hosts.begin(), current_.hosts.end(), [this](int host) {
    return roster_->host(host).phase == RosterHost::kGone || current_.quiet.count(host) != 0 ||
           UnstartedIsQuiet(host);
  });
}

// Nothing was written in an epoch that has not started: who stands again has left it.
bool Epochs::UnstartedIsQuiet(int host) const {
  if (current_.started || !current_.broke) return false;
  return std::all_of(current_.members.begin(), current_.members.end(), [&](uint64_t number) {
    const RosterMember& member = roster_->Of(number);
    return member.host != host || !member.alive || member.stands;
  });
}

void Epochs::Break(int from_host, const Cause& cause, double now) {
  causes_.Add(cause);
  if (current_.started) last_broke_ = true;
  if (ended_at_ < 0) ended_at_ = now;
  if (current_.broke) return;
  current_.broke = true;
  current_.ended_at = now;
  MembershipAction action = {MembershipAction::kAbort, from_host, cause.text};
  action.epoch = current_.number;
  wants_->Add(std::move(action));
}

void Epochs::Announce(const std::string& text, double now) {
  current_.announced = true;
  current_.announced_at = now;
  if (ended_at_ < 0) ended_at_ = now;
  MembershipAction action = {MembershipAction::kAnnounce, -1, text};
  action.epoch = current_.number;
  wants_->Add(std::move(action));
}

void Epochs::Unreached(int host, int other, uint64_t epoch, const std::string& why) {
  if (epoch != current_.number || host == other || AllQuiet()) return;
  current_.cut.emplace(std::minmax(host, other), why);
}

void Epochs::Quiet(int host, const KeptCommits& kept) {
  current_.quiet.insert(host);
  roster_->host(host).kept = kept;
}

void Epochs::Start(double now) {
  current_.started = true;
  history_.push_back({current_.number, static_cast<int>(current_.members.size()),
                      static_cast<int>(current_.hosts.size()), current_.text, current_.commit,
                      current_.rolls_back, ended_at_ >= 0 ? now - ended_at_ : 0});
  wants_->Say(SayEpoch(history_.back()));
  roster_->NumberRanks(current_.members);
  last_members_ = current_.members;
  last_hosts_ = current_.hosts;
  for (int host = 0; host < static_cast<int>(roster_->hosts().size()); ++host) {
    if (!HasHost(host)) roster_->host(host).kept = {};
  }
  last_broke_ = false;
  causes_.Clear();
  ended_at_ = -1;
}

NextEpoch Epochs::World(const std::set<uint64_t>& members) const {
  NextEpoch next;
  next.number = current_.number + 1;
  next.rolls_back = last_broke_;
  std::map<int, CandidateHost> hosts;
  for (const uint64_t number : members) {
    const RosterMember& member = roster_->Of(number);
    CandidateHost& host = hosts[member.host];
    host.host = member.host;
    host.name = roster_->host(member.host).name;
    host.kept = roster_->host(member.host).kept;
    host.members.push_back({number, member.slot, member.share, member.last_rank});
  }
  std::vector<uint64_t> commits;  // only those that go on count
  for (auto& [index, host] : hosts) {
    commits.push_back(host.kept.newest);
    next.hosts.push_back(std::move(host));
  }
  next.resume_commit = ResumeCommit(commits);
  return next;
}

void Epochs::Adopt(const v1::EpochPropose& propose, const std::string& text, double now) {
  current_ = CurrentEpoch();
  current_.number = propose.epoch();
  current_.commit = propose.resume_commit();
  current_.rolls_back = last_broke_ || propose.rolls_back();
  current_.has_needy = !history_.empty() && propose.needy_size() > 0;
  current_.proposed_at = now;
  current_.text = text;
  for (const v1::EpochHost& listed : propose.hosts()) {
    const int host = static_cast<int>(listed.host());
    // The host forgets what was committed beyond the commit that the epoch resumes.
    roster_->host(host).kept = {listed.void_state() ? 0 : current_.commit, 0};
    current_.hosts.push_back(host);
    for (const v1::Seat& seat : listed.members()) {
      current_.members.push_back(seat.member());
      roster_->Of(seat.member()).epoch = current_.number;
      roster_->Of(seat.member()).stands = false;
    }
  }
}

bool Epochs::MayBeCommitted() const {
  return newest_commit_ > 0 ||
         std::all_of(last_hosts_.begin(), last_hosts_.end(),
                     [this](int host) { return roster_->host(host).phase == RosterHost::kGone; });
}

// A host that is gone has nothing.
bool Epochs::NoHostHasState() const {
  if (history_.empty() || !last_broke_ || !MayBeCommitted()) return false;
  const auto& hosts = roster_->hosts();
  return std::none_of(hosts.begin(), hosts.end(), [](const RosterHost& host) {
    return host.phase != RosterHost::kGone && host.kept.newest > 0;
  });
}

}  // namespace hvd::cli
