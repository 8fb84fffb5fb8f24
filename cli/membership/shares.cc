// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/shares.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "hostfile/host_item.h"

namespace hvd::cli {

Shares::Shares(const ElasticOptions& options, Roster* roster, const Epochs* epochs, Wants* wants)
    : list_may_change_(!options.discovery_script.empty() || !options.hostfile.empty()),
      roster_(roster),
      epochs_(epochs),
      wants_(wants),
      cooldown_(options.cooldown_least_s, options.cooldown_most_s) {}

void Shares::Listed(const std::vector<BookHost>& hosts) {
  list_ = hosts;
  std::erase_if(left_out_, [this](const std::string& name) { return Find(name) == nullptr; });
}

const BookHost* Shares::Find(const std::string& host) const {
  const auto found = std::find_if(list_.begin(), list_.end(),
                                  [&host](const BookHost& each) { return each.name == host; });
  return found == list_.end() ? nullptr : &*found;
}

// ---- hosts ----

void Shares::FailHost(int host, const std::string& why, double now) {
  const RosterHost& failed = roster_->host(host);
  wants_->NoteFailure(absl::StrCat("host ", failed.name, ": ", why));
  const bool known = failed.drained && failed.phase == RosterHost::kGone;
  if (known && cooldown_.Cools(failed.name, now)) return;
  const double length = cooldown_.Failed(failed.name, now);
  wants_->Say(absl::StrFormat("host %s: %s; it is left alone for %g s", failed.name, why, length));
}

double Shares::Drain(int host, double now) {
  roster_->host(host).drained = true;
  return cooldown_.Failed(roster_->host(host).name, now);
}

void Shares::LeaveHostOut(int host, const std::string& why) {
  const std::string& name = roster_->host(host).name;
  left_out_.insert(name);
  roster_->host(host).drained = true;
  wants_->NoteFailure(absl::StrCat("host ", name, ": ", why));
  wants_->Say(absl::StrCat("host ", name, " is left out: ", why,
                           "; it comes back when the list of hosts has been without it"));
}

void Shares::Renew(const std::string& host) {
  budget_.Renew(host, epochs_->Runs());
  std::erase_if(failed_starts_, [&host](const auto& entry) {
    return entry.first.first == host && entry.first.second != kWholeHost;
  });
}

// ---- shares ----

void Shares::LeaveOut(uint64_t member, const std::string& why, double now) {
  const RosterMember& dead = roster_->Of(member);
  const std::string& host = roster_->host(dead.host).name;
  wants_->Say(absl::StrFormat("host %s: share %d is left out: %s", host, dead.share, why));
  const BookHost* const listed = Find(host);
  if (listed == nullptr || Usable(*listed) > 0) return;
  // Those who still live there do so in no share of ours.
  roster_->host(dead.host).drained = true;
  FailHost(dead.host, "the ranks of all its shares have died again and again", now);
}

bool Shares::IsOut(const std::string& host, int share) const {
  const auto failed = failed_starts_.find({host, share});
  return budget_.IsOut(host, share) ||
         (failed != failed_starts_.end() && failed->second >= kFailedStarts);
}

int Shares::Usable(const BookHost& listed) const {
  int usable = 0;
  for (int share = 0; share < listed.shares; ++share) usable += !IsOut(listed.name, share);
  return usable;
}

// Where the program itself fails each time, another start of its host helps as little; while others
// go on without it, it may be the host.
int Shares::UsableAnew(const BookHost& listed) const {
  int usable = 0;
  for (int share = 0; share < listed.shares; ++share) {
    usable += epochs_->Runs() || !budget_.StaysOut(listed.name, share);
  }
  return usable;
}

bool Shares::Died(const RosterMember& dead, bool outside, double now) {
  return budget_.Died(roster_->host(dead.host).name, dead.share, outside, now);
}

int Shares::CountFailedStart(const RosterMember& dead) {
  const RosterHost& host = roster_->host(dead.host);
  return ++failed_starts_[{host.name, host.proven ? dead.share : kWholeHost}];
}

void Shares::NoteKept(int host, uint64_t commit) {
  const CurrentEpoch& epoch = epochs_->current();
  if (!epoch.started || commit <= epoch.commit) return;
  for (const uint64_t member : epoch.members) {
    RosterMember& keeper = roster_->Of(member);
    if (keeper.host != host) continue;
    keeper.proven = roster_->host(host).proven = true;
    failed_starts_.erase({roster_->host(host).name, keeper.share});
    failed_starts_.erase({roster_->host(host).name, kWholeHost});
  }
}

// Hosts that have failed come back with their shares. A list that may change may grow.
int Shares::MostThatMayCome() const {
  if (list_may_change_) return kMaxRanks;
  int most = 0;
  for (const BookHost& listed : list_) {
    if (IsLeftOut(listed.name)) continue;
    const int host = roster_->LiveHost(listed.name);
    const bool anew = host < 0 || roster_->host(host).drained ||
                      roster_->host(host).phase == RosterHost::kStopping;
    most += anew ? UsableAnew(listed) : Usable(listed);
  }
  return most;
}

}  // namespace hvd::cli
