// SPDX-License-Identifier: Apache-2.0
// Membership's part for epochs: what breaks or changes one, and when the next is proposed.
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/membership/epoch_words.h"
#include "cli/membership/membership.h"

namespace hvd {
namespace {

// For members that are on their way when one already waits: so long, a change is one and not many.
constexpr double kGatherS = 1;
// A recovery is shorter: a person hears of what takes longer.
constexpr double kSayTooFewS = 5;
constexpr double kNever = -1;

}  // namespace

void Membership::Broke(int host, uint64_t epoch, const std::string& cause, double now) {
  if (epoch != current_.number || AllQuiet()) return;
  Break(host, {Cause::kWord, cause}, now);
  Settle(now);
}

void Membership::Ready(int host, uint64_t epoch) {
  if (epoch == current_.number) current_.ready.insert(host);
}

void Membership::Break(int from_host, const Cause& cause, double now) {
  AddCause(cause);
  if (current_.started) last_broke_ = true;
  if (ended_at_ < 0) ended_at_ = now;
  if (current_.broke) return;
  current_.broke = true;
  current_.ended_at = now;
  MembershipAction action = {MembershipAction::kAbort, from_host, cause.text};
  action.epoch = current_.number;
  actions_.push_back(std::move(action));
}

// The same end is told twice, once with more words.
void Membership::AddCause(const Cause& cause) {
  const auto same = std::find_if(causes_.begin(), causes_.end(), [&](const Cause& known) {
    return absl::StrContains(cause.text, known.text) || absl::StrContains(known.text, cause.text);
  });
  if (same == causes_.end()) return causes_.push_back(cause);
  const bool says_more = cause.order == same->order && cause.text.size() > same->text.size();
  if (cause.order < same->order || says_more) *same = cause;
}

// Deaths first; what ranks have said of one another is no news then.
std::vector<std::string> Membership::SayCauses() const {
  std::vector<Cause> causes = causes_;
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.order < b.order; });
  std::vector<std::string> words;
  for (const Cause& cause : causes) {
    if (cause.order == Cause::kWord && causes.front().order != Cause::kWord) continue;
    words.push_back(cause.text);
  }
  return words;
}

void Membership::Quiet(int host, uint64_t epoch, const KeptCommits& kept, double now) {
  if (epoch != current_.number || hosts_[host].phase == Host::kGone) return;
  current_.quiet.insert(host);
  hosts_[host].kept = kept;
  NoteKept(host, kept.newest);
  NoteCommit(kept);
  Settle(now);
}

// Some rank is in it yet: all may have left by themselves, which breaks nothing.
bool Membership::Runs() const {
  return current_.started && !current_.broke && !AllQuiet() &&
         std::any_of(current_.members.begin(), current_.members.end(),
                     [this](uint64_t member) { return Of(member).alive; });
}

// A host that is gone has no rank that goes on.
bool Membership::AllQuiet() const {
  return std::all_of(current_.hosts.begin(), current_.hosts.end(), [this](int host) {
    return hosts_[host].phase == Host::kGone || current_.quiet.count(host) != 0 ||
           UnstartedIsQuiet(host);
  });
}

// Nothing was written in an epoch that has not started: who stands again has left it.
bool Membership::UnstartedIsQuiet(int host) const {
  if (current_.started || !current_.broke) return false;
  return std::all_of(current_.members.begin(), current_.members.end(), [&](uint64_t number) {
    const Member& member = Of(number);
    return member.host != host || !member.alive || member.stands;
  });
}

void Membership::Started(uint64_t epoch, double now) {
  if (epoch != current_.number || current_.started) return;
  current_.started = true;
  const size_t hosts = current_.hosts.size();
  history_.push_back({epoch, static_cast<int>(current_.members.size()), static_cast<int>(hosts),
                      current_.text, current_.commit, current_.rolls_back,
                      ended_at_ >= 0 ? now - ended_at_ : 0});
  Say(SayEpoch(history_.back()));
  for (Member& member : members_) member.last_rank = -1;
  for (size_t rank = 0; rank < current_.members.size(); ++rank) {
    Of(current_.members[rank]).last_rank = static_cast<int>(rank);
  }
  last_started_ = current_.members;
  last_hosts_ = current_.hosts;
  for (size_t host = 0; host < hosts_.size(); ++host) {
    const bool in_it = std::find(current_.hosts.begin(), current_.hosts.end(),
                                 static_cast<int>(host)) != current_.hosts.end();
    if (!in_it) hosts_[host].kept = {};
  }
  last_broke_ = false;
  causes_.clear();
  ended_at_ = kNever;
  Settle(now);
}

// Whoever is to come or to go does so where the others lose nothing by it.
void Membership::LookAtLiving(double now) {
  if (closed_ || !Runs() || current_.announced || AllQuiet() || !ended_well_.empty()) return;
  const bool leaves =
      std::any_of(current_.members.begin(), current_.members.end(),
                  [this](uint64_t member) { return Of(member).alive && !Stays(member); });
  const auto joins = std::count_if(staying_.begin(), staying_.end(), [this](uint64_t member) {
    return !InCurrent(member) && Of(member).stands;
  });
  if (joins == 0) gathers_since_ = kNever;
  if (!leaves && (joins == 0 || GathersStill(joins, now))) return;
  gathers_since_ = kNever;
  Change(WhoChanges(), now);
}

bool Membership::GathersStill(size_t standing, double now) {
  size_t coming = 0;
  for (const uint64_t member : staying_) {
    if (!InCurrent(member)) ++coming;
  }
  const bool reaching = history_.empty() &&
                        std::any_of(hosts_.begin(), hosts_.end(),
                                    [](const Host& host) { return host.phase == Host::kReaching; });
  if (coming <= standing && !reaching) return false;
  if (gathers_since_ < 0) gathers_since_ = now;
  WakeAt(gathers_since_ + kGatherS, now);
  return now < gathers_since_ + kGatherS;
}

void Membership::Change(const std::string& text, double now) {
  // Newcomers have the state with their first commit, not before.
  if (options_.change == MembershipChange::kNow && !current_.has_needy) {
    return Break(-1, {Cause::kEnd, text}, now);
  }
  current_.announced = true;
  current_.announced_at = now;
  if (ended_at_ < 0) ended_at_ = now;
  MembershipAction action = {MembershipAction::kAnnounce, -1, text};
  action.epoch = current_.number;
  actions_.push_back(std::move(action));
}

bool Membership::SurvivorsStand() const {
  return std::all_of(current_.members.begin(), current_.members.end(), [this](uint64_t member) {
    return !Of(member).alive || !Stays(member) || Of(member).stands;
  });
}

void Membership::LookForNext(double now) {
  if (closed_ || ended_) return;
  const bool over = AllQuiet();
  for (uint64_t member = 1; member <= members_.size(); ++member) {
    const bool goes = Of(member).alive && !Of(member).retired && !Stays(member);
    if (goes && (over || !InCurrent(member))) {
      Retire(member, true, "the job has no more use for it");
    }
  }
  if (!over || !SurvivorsStand()) {
    too_few_since_ = kNever;
    return;
  }
  if (NoHostHasState()) return EndWithoutState();
  const auto standing = std::count_if(staying_.begin(), staying_.end(),
                                      [this](uint64_t member) { return Of(member).stands; });
  if (!MayPropose(standing, now)) return;
  if (history_.empty() || !MayBeCommitted() || HasState(World(Standing()))) return Propose(now);
  EndWithoutState();
}

// Nobody who is still to come could bring what was committed: a host that is gone has nothing.
bool Membership::NoHostHasState() const {
  if (history_.empty() || !last_broke_ || !MayBeCommitted()) return false;
  return std::none_of(hosts_.begin(), hosts_.end(), [](const Host& host) {
    return host.phase != Host::kGone && host.kept.newest > 0;
  });
}

void Membership::EndWithoutState() {
  const std::string text =
      newest_commit_ > 0
          ? absl::StrFormat(
                "every host that had what was committed (commit %d) is lost or left out",
                newest_commit_)
          : "every host of the last epoch is lost, and with them what may have been committed";
  // A host that is left out since the program fails there each time is lost by the program.
  if (culprit_.member != 0 && !culprit_.outside) return EndTooFew(text);
  End(MembershipEnd::kStateLost, 0, text);
}

// Whether the members that stand lack what was committed, while a member of a host that has it is
// on the way.
bool Membership::AwaitsState(double now) const {
  if (history_.empty() || HasState(World(Standing()))) return false;
  const auto comes = [this](uint64_t number) {
    return !Of(number).stands && hosts_[Of(number).host].kept.newest > 0;
  };
  // Another comes to its share as soon as that is free.
  const auto makes_room = [this](const Member& member) {
    const bool goes = (member.alive && member.retired) || member.lingers;
    return goes && member.holds_slot && hosts_[member.host].kept.newest > 0;
  };
  return std::any_of(staying_.begin(), staying_.end(), comes) ||
         std::any_of(members_.begin(), members_.end(), makes_room) || WillSpawnAtState(now);
}

// One host of the last epoch would know of every commit that has returned there.
bool Membership::MayBeCommitted() const {
  return newest_commit_ > 0 ||
         std::all_of(last_hosts_.begin(), last_hosts_.end(),
                     [this](int host) { return hosts_[host].phase == Host::kGone; });
}

std::set<uint64_t> Membership::Standing() const {
  std::set<uint64_t> standing;
  for (const uint64_t member : staying_) {
    if (Of(member).stands) standing.insert(member);
  }
  return standing;
}

void Membership::WaitForMore(size_t standing, int needed, double now) {
  gathers_since_ = kNever;
  if (too_few_since_ < 0) {
    too_few_since_ = now;
    too_few_said_ = false;
  }
  const std::string uncome = SayUncome();
  // While all are on their way to hvd_init nobody waits for anybody.
  if (first_stood_at_ < 0 && !uncome.empty()) too_few_since_ = now;
  const double until = too_few_since_ + options_.elastic_timeout_s;
  WakeAt(until, now);
  const std::string there = absl::StrFormat("%d of at least %d ranks are there", standing, needed);
  if (std::min(most(), MostThatMayCome()) < needed) {
    return EndTooFew(absl::StrCat(there,
                                  ", and no more can come: shares are left out, and the list of "
                                  "hosts stays as it is"));
  }
  const std::string lacks = AwaitsState(now) ? ", and none on a host that has what was committed"
                            : uncome.empty() ? ""
                                             : absl::StrCat("; ", uncome);
  if (now >= until) {
    return EndTooFew(absl::StrFormat("%s%s, after --elastic-timeout %g s", there, lacks,
                                     options_.elastic_timeout_s));
  }
  if (too_few_said_) return;
  if (history_.empty() && CountOverdue(now) == 0) return;  // of hosts others tell
  WakeAt(too_few_since_ + kSayTooFewS, now);
  if (now < too_few_since_ + kSayTooFewS) return;
  too_few_said_ = true;
  Say(absl::StrFormat("%s%s; more are waited for, up to --elastic-timeout %g s", there, lacks,
                      options_.elastic_timeout_s));
}

bool Membership::MayPropose(size_t standing, double now) {
  const int all = std::min(np_, MostThatMayCome());
  const int overdue = history_.empty() ? CountOverdue(now) : 0;
  const int first = std::max(options_.min_np, all - overdue);
  const int needed = history_.empty() ? first : options_.min_np;
  const bool lacks_state = AwaitsState(now);
  if (static_cast<int>(standing) < needed || lacks_state) {
    WaitForMore(standing, needed, now);
    return false;
  }
  too_few_since_ = kNever;
  if (history_.empty()) {
    if (static_cast<int>(standing) < all) SayBeginsWithout();
    return overdue > 0 || !GathersStill(standing, now);
  }
  const int resets = static_cast<int>(history_.size()) - 1;
  if (options_.reset_limit < 0 || resets < options_.reset_limit) return true;
  End(MembershipEnd::kResetLimit, 0,
      absl::StrFormat("the job would need epoch %d, and --reset-limit %d allows no more",
                      current_.number + 1, options_.reset_limit));
  return false;
}

NextEpoch Membership::World(const std::set<uint64_t>& members) const {
  NextEpoch next;
  next.number = current_.number + 1;
  next.rolls_back = last_broke_;
  std::map<int, CandidateHost> hosts;
  for (const uint64_t number : members) {
    const Member& member = Of(number);
    CandidateHost& host = hosts[member.host];
    host.host = member.host;
    host.name = hosts_[member.host].name;
    host.kept = hosts_[member.host].kept;
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

void Membership::Propose(double now) {
  MembershipAction action = {MembershipAction::kPropose};
  action.propose = ProposeNext(World(Standing()));
  std::vector<std::string> causes = SayCauses();
  const std::string changes = WhoChanges();
  if (!changes.empty()) causes.push_back(changes);
  current_ = Epoch();
  current_.number = action.propose.epoch();
  current_.commit = action.propose.resume_commit();
  current_.rolls_back = last_broke_ || action.propose.rolls_back();
  current_.has_needy = !history_.empty() && action.propose.needy_size() > 0;
  current_.proposed_at = now;
  current_.text = JoinCauses(causes);
  for (const v1::EpochHost& listed : action.propose.hosts()) {
    Host& host = hosts_[listed.host()];
    // The host forgets what was committed beyond the commit that the epoch resumes.
    host.kept = {listed.void_state() ? 0 : current_.commit, 0};
    current_.hosts.push_back(static_cast<int>(listed.host()));
    for (const v1::Seat& seat : listed.members()) {
      current_.members.push_back(seat.member());
      Of(seat.member()).epoch = current_.number;
      Of(seat.member()).stands = false;
    }
  }
  gathers_since_ = kNever;
  WakeAt(now + options_.elastic_timeout_s, now);
  actions_.push_back(std::move(action));
}

// Against the last epoch that started, as far as its causes do not say so already.
std::string Membership::WhoChanges() const {
  if (history_.empty()) return "";
  std::set<std::string> names;
  int joined = 0, left = 0;
  for (const uint64_t number : staying_) {
    const bool comes = Of(number).stands || InCurrent(number);
    if (comes) names.insert(hosts_[Of(number).host].name);
    joined += comes && Of(number).last_rank < 0;
  }
  for (const uint64_t number : last_started_) left += Of(number).alive && !Stays(number);
  std::set<std::string> before;
  for (const int host : last_hosts_) before.insert(hosts_[host].name);
  std::vector<std::string> words;
  for (const std::string& name : names) {
    if (before.count(name) == 0) words.push_back(absl::StrCat(name, " joined"));
  }
  for (const std::string& name : before) {
    const bool told = std::any_of(causes_.begin(), causes_.end(), [&name](const auto& cause) {
      return absl::StartsWith(cause.text, absl::StrCat(name, " "));
    });
    if (names.count(name) == 0 && !told) words.push_back(absl::StrCat(name, " left"));
  }
  if (words.empty() && causes_.empty() && joined > 0) words.push_back(SayRanks(joined, "joined"));
  if (words.empty() && causes_.empty() && left > 0) words.push_back(SayRanks(left, "left"));
  return absl::StrJoin(words, ", ");
}

void Membership::End(MembershipEnd end, uint64_t member, std::string text) {
  ended_ = true;
  MembershipAction action = {MembershipAction::kEnd, -1, std::move(text), member};
  if (!failures_.empty() && end != MembershipEnd::kProgramBug) {
    absl::StrAppend(&action.text, "\n  the last failures:");
    for (const std::string& failure : failures_) absl::StrAppend(&action.text, "\n    ", failure);
  }
  if (end == MembershipEnd::kResetLimit) absl::StrAppend(&action.text, History());
  action.end = end;
  actions_.push_back(std::move(action));
}

std::string Membership::History() const {
  std::string text = "\n  its epochs:";
  for (const EpochRecord& record : history_) absl::StrAppend(&text, "\n    ", SayEpoch(record));
  return text;
}

}  // namespace hvd
