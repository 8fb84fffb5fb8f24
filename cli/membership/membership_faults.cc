// SPDX-License-Identifier: Apache-2.0
// Membership's part for faults that would end one epoch after another: hosts between which nothing
// passes, and hosts whose ranks fail before they have had any part in a commit.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/membership/epoch_words.h"
#include "cli/membership/link_words.h"
#include "cli/membership/membership.h"

namespace hvd {
namespace {

// Starts of a host, or of a share, that come to nothing one after another: so many, and it is left
// out.
constexpr int kFailedStarts = 3;

}  // namespace

// ---- links ----

void Membership::Unreached(int host, int other, uint64_t epoch, const std::string& why) {
  if (epoch != current_.number || host == other || AllQuiet()) return;
  current_.cut.emplace(std::minmax(host, other), why);
}

// Once the epoch is over for everybody. Where somebody has died or a host was lost, that is the
// reason for all that did not come.
void Membership::JudgeLinks() {
  const bool over = current_.started && AllQuiet() && SurvivorsStand();
  if (closed_ || !over || std::exchange(current_.judged, true)) return;
  // All have: one alone may have written its part, and waited for the others.
  const bool got_on = std::all_of(current_.hosts.begin(), current_.hosts.end(), [this](int host) {
    return hosts_[host].kept.newest > current_.commit;
  });
  if (got_on) ForgetCutLinks();
  if (current_.lost_any) return;
  for (const auto& [link, why] : current_.cut) {
    const std::string &one = hosts_[link.first].name, &other = hosts_[link.second].name;
    if (links_.Failed(one, other) < BadLinks::kEpochs) continue;
    if (left_out_.count(one) != 0 || left_out_.count(other) != 0) continue;
    const int out = SideToLeaveOut(link.first, link.second);
    LeaveHostOut(out, absl::StrFormat("%s, for which %d epochs in a row have ended; %s",
                                      SayLink(one, other, why), BadLinks::kEpochs, kLinkHint));
  }
  if (!current_.cut.empty()) ChooseStaying();
}

void Membership::ForgetCutLinks() {
  for (const int one : current_.hosts) {
    for (const int other : current_.hosts) links_.Works(hosts_[one].name, hosts_[other].name);
  }
}

// The one without the state; that which is cut off from more; the younger.
int Membership::SideToLeaveOut(int one, int other) const {
  const auto worth = [this](int host) {
    const std::string& name = hosts_[host].name;
    const auto listed = std::find_if(list_.begin(), list_.end(),
                                     [&name](const BookHost& each) { return each.name == name; });
    return std::make_tuple(hosts_[host].kept.newest > 0, -links_.Of(name), list_.end() - listed);
  };
  return worth(one) < worth(other) ? one : other;
}

// ---- hosts that are left out ----

void Membership::LeaveHostOut(int host, const std::string& why) {
  const std::string& name = hosts_[host].name;
  left_out_.insert(name);
  hosts_[host].drained = true;
  NoteFailure(absl::StrCat("host ", name, ": ", why));
  Say(absl::StrCat("host ", name, " is left out: ", why,
                   "; it comes back when the list of hosts has been without it"));
}

void Membership::ForgiveUnlisted() {
  std::erase_if(left_out_, [this](const std::string& name) {
    return std::none_of(list_.begin(), list_.end(),
                        [&name](const BookHost& listed) { return listed.name == name; });
  });
}

void Membership::LeaveShareOut(uint64_t member, const std::string& why, double now) {
  const Member& dead = Of(member);
  const std::string& host = hosts_[dead.host].name;
  Say(absl::StrFormat("host %s: share %d is left out: %s", host, dead.share, why));
  const auto listed = std::find_if(list_.begin(), list_.end(),
                                   [&](const BookHost& each) { return each.name == host; });
  if (listed == list_.end() || UsableShares(*listed) > 0) return;
  hosts_[dead.host].drained = true;  // those who still live there do so in no share of ours
  FailHost(dead.host, "the ranks of all its shares have died again and again", now);
}

// The host begins anew.
void Membership::RenewShares(const std::string& host) {
  budget_.Renew(host, Runs());
  std::erase_if(failed_starts_, [&host](const auto& entry) {
    return entry.first.first == host && entry.first.second != kWholeHost;
  });
}

bool Membership::ShareIsOut(const std::string& host, int share) const {
  const auto failed = failed_starts_.find({host, share});
  return budget_.IsOut(host, share) ||
         (failed != failed_starts_.end() && failed->second >= kFailedStarts);
}

// ---- starts that come to nothing ----

// A host says for itself which commit its ranks have had a part in.
void Membership::NoteKept(int host, uint64_t commit) {
  if (!current_.started || commit <= current_.commit) return;
  for (const uint64_t member : current_.members) {
    if (Of(member).host != host) continue;
    Of(member).proven = hosts_[host].proven = true;
    failed_starts_.erase({hosts_[host].name, Of(member).share});
    failed_starts_.erase({hosts_[host].name, kWholeHost});
  }
}

// True: nobody is started there for now. Commits of others do not make up for it: each of these
// starts has cost them an epoch.
bool Membership::NoteFailedStart(uint64_t member, const MemberEnd& end, double now) {
  const Member& dead = Of(member);
  if (dead.proven || !end.own) return false;
  const int host = dead.host;
  const bool others_live =
      std::any_of(members_.begin(), members_.end(),
                  [host](const Member& each) { return each.alive && each.host != host; });
  const bool whole = !hosts_[host].proven;
  if (whole && hosts_[host].drained) return true;
  // While no host is known to work, it may be the program: one failure does not tell.
  const bool any_works =
      std::any_of(hosts_.begin(), hosts_.end(), [](const Host& each) { return each.proven; });
  const bool tells = any_works || ++hosts_[host].failed_starts >= kFailedStarts;
  if (whole && !(others_live && tells)) return false;
  const std::string& name = hosts_[host].name;
  const int times = ++failed_starts_[{name, whole ? kWholeHost : dead.share}];
  const std::string why = absl::StrFormat("%s before it had a part in any commit (time %d of %d)",
                                          end.what, times, kFailedStarts);
  if (!whole && times < kFailedStarts) return false;
  if (times >= kFailedStarts) culprit_ = {member, false, end.what};
  if (!whole) {
    LeaveShareOut(member, why, now);
    return true;
  }
  hosts_[host].drained = true;
  times < kFailedStarts ? FailHost(host, why, now) : LeaveHostOut(host, why);
  return true;
}

// ---- members that stay though their host is to go ----

void Membership::SayKept() {
  const Host* const kept = kept_.empty() ? nullptr : &hosts_[Of(*kept_.begin()).host];
  const bool listed =
      kept != nullptr && std::any_of(list_.begin(), list_.end(),
                                     [kept](auto& each) { return each.name == kept->name; });
  const bool goes = kept != nullptr && (kept->drained || !listed) && !closed_ && !ended_;
  if (!goes || std::exchange(kept_told_, true)) {
    kept_told_ = goes;
    return;
  }
  const std::string& host = kept->name;
  Say(absl::StrCat("host ", host, listed ? " is to go" : " is not in the list of hosts any more",
                   ", but its ranks go on: no other host has the state of the job; they leave as "
                   "soon as one has it"));
}

}  // namespace hvd
