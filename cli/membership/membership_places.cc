// SPDX-License-Identifier: Apache-2.0
// Membership's part for hosts: which are reached, where members are started, which are let go.
#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/membership/membership.h"
#include "hostfile/host_item.h"
#include "proto/page/host_page.h"

namespace hvd {
int Membership::most() const { return options_.max_np > 0 ? options_.max_np : kMaxRanks; }

int Membership::LiveHost(const std::string& name) const {
  for (int host = static_cast<int>(hosts_.size()) - 1; host >= 0; --host) {
    if (hosts_[host].name == name && hosts_[host].phase != Host::kGone) return host;
  }
  return -1;
}

int Membership::UsableShares(const BookHost& listed) const {
  int usable = 0;
  for (int share = 0; share < listed.shares; ++share) usable += !ShareIsOut(listed.name, share);
  return usable;
}

// Where the program itself fails each time, another start of its host helps as little; while others
// go on without it, it may be the host.
int Membership::SharesAnew(const BookHost& listed) const {
  int usable = 0;
  for (int share = 0; share < listed.shares; ++share) {
    usable += Runs() || !budget_.StaysOut(listed.name, share);
  }
  return usable;
}

// Hosts that have failed come back with their shares. A list that may change may grow.
int Membership::MostThatMayCome() const {
  if (!options_.discovery_script.empty() || !options_.hostfile.empty()) return kMaxRanks;
  int most = 0;
  for (const BookHost& listed : list_) {
    if (left_out_.count(listed.name) != 0) continue;
    const int host = LiveHost(listed.name);
    const bool anew = host < 0 || hosts_[host].drained || hosts_[host].phase == Host::kStopping;
    most += anew ? SharesAnew(listed) : UsableShares(listed);
  }
  return most;
}

// If there are more members than there may be, those in the epoch stay first, then those on the
// older hosts.
void Membership::ChooseStaying() {
  using Order = std::tuple<bool, size_t, int, uint64_t>;  // joins, place in the list, share, member
  std::vector<Order> order;
  for (uint64_t number = 1; number <= members_.size(); ++number) {
    const Member& member = Of(number);
    const Host& host = hosts_[member.host];
    if (!member.alive || member.retired || host.drained || host.phase != Host::kReady) continue;
    for (size_t place = 0; place < list_.size(); ++place) {
      if (list_[place].name != host.name || member.share >= list_[place].shares) continue;
      order.push_back({!InCurrent(number), place, member.share, number});
    }
  }
  std::sort(order.begin(), order.end());
  if (order.size() > static_cast<size_t>(most())) order.resize(most());
  staying_.clear();
  for (const Order& each : order) staying_.insert(std::get<3>(each));
  KeepTheState();
}

// Where nobody stays who has the state, those of the oldest host that is to go wait until others
// have it.
void Membership::KeepTheState() {
  kept_.clear();
  // After a break by what its host has told; until then whoever was in the epoch counts, since it
  // hears of a change in a commit only, and has the state then.
  const auto holds = [this](uint64_t number) {
    const bool has = !last_broke_ || hosts_[Of(number).host].kept.newest > 0;
    return Of(number).last_rank >= 0 && has;
  };
  if (history_.empty() || std::any_of(staying_.begin(), staying_.end(), holds)) return;
  // Nobody has committed anything, so that the program begins anew whoever stays.
  if (last_broke_ && AllQuiet() && !MayBeCommitted()) return;
  KeepOneHost(last_broke_ ? WhereTheStateIs() : last_started_);
  if (kept_.empty()) KeepOneHost(last_broke_ ? last_started_ : WhereTheStateIs());
  staying_.insert(kept_.begin(), kept_.end());
}

// The members on hosts that have the state: also those on their way there, since whoever had it has
// died.
std::vector<uint64_t> Membership::WhereTheStateIs() const {
  std::vector<uint64_t> there;
  for (uint64_t number = 1; number <= members_.size(); ++number) {
    if (hosts_[Of(number).host].kept.newest > 0) there.push_back(number);
  }
  return there;
}

void Membership::KeepOneHost(const std::vector<uint64_t>& members) {
  int host = -1;
  for (const uint64_t number : members) {
    const Member& member = Of(number);
    const Host& its = hosts_[member.host];
    const bool of_use = left_out_.count(its.name) == 0 || its.kept.newest > 0;
    const bool may = member.alive && !member.retired && its.phase == Host::kReady && of_use;
    if (may && host < 0) host = member.host;
    if (may && member.host == host) kept_.insert(number);
  }
}

// Members that live keep their places; the places that are left go to the older hosts first.
std::vector<Membership::Place> Membership::FindPlaces(double now) const {
  std::vector<Place> places;
  int room = most() - static_cast<int>(staying_.size() - kept_.size() + ended_well_.size());
  for (const BookHost& listed : list_) {
    Place place = {&listed, LiveHost(listed.name)};
    const bool left_out = left_out_.count(listed.name) != 0;
    const bool usable =
        place.host < 0 ? !left_out && !cooldown_.Cools(listed.name, now)
                       : !hosts_[place.host].drained && hosts_[place.host].phase != Host::kStopping;
    auto living = std::count_if(staying_.begin(), staying_.end(),
                                [&](uint64_t member) { return Of(member).host == place.host; });
    living += std::count_if(ended_well_.begin(), ended_well_.end(),
                            [&](const auto& ended) { return Of(ended.first).host == place.host; });
    const int usable_shares = place.host < 0 ? SharesAnew(listed) : UsableShares(listed);
    const int free = std::max(0, usable_shares - static_cast<int>(living));
    if (usable) place.free = std::min(room, free);
    place.needed = living > 0 || place.free > 0;
    room -= place.free;
    places.push_back(place);
  }
  return places;
}

// The next of a host that has the state is to be started there, when its share's time has come.
bool Membership::WillSpawnAtState(double now) const {
  const std::vector<Place> places = FindPlaces(now);
  return std::any_of(places.begin(), places.end(), [this](const Place& place) {
    return place.host >= 0 && place.free > 0 && hosts_[place.host].phase == Host::kReady &&
           hosts_[place.host].kept.newest > 0;
  });
}

void Membership::ReachAndSpawn(double now) {
  for (const BookHost& listed : list_) WakeAt(cooldown_.Until(listed.name), now);
  std::vector<Place> places = FindPlaces(now);
  for (Place& place : places) {
    if (place.host < 0 && place.free > 0) {
      RenewShares(place.listed->name);
      place.host = static_cast<int>(hosts_.size());
      hosts_.push_back({Host::kReaching, place.listed->name});
      actions_.push_back({MembershipAction::kReach, place.host, place.listed->name});
    } else if (place.free > 0 && hosts_[place.host].phase == Host::kReady) {
      Spawn(place, now);
    }
  }
  StopIdleHosts(places);
}

bool Membership::ShareFree(int host, int share) const {
  for (uint64_t number = 1; number <= members_.size(); ++number) {
    const Member& member = Of(number);
    const bool there =
        member.alive || (member.lingers && member.holds_slot) || ended_well_.count(number) != 0;
    if (member.host == host && member.share == share && there) return false;
  }
  return true;
}

// The first free one behind the one that was taken last: what a slot's worker has said may still be
// under way when it is free. -1 while old output still comes from all of them.
int Membership::FreeSlot(int host) const {
  for (int step = 0; step < kMaxLocalRanks; ++step) {
    const int slot = (hosts_[host].next_slot + step) % kMaxLocalRanks;
    const bool free = std::none_of(members_.begin(), members_.end(), [&](const Member& member) {
      return member.host == host && member.slot == slot && member.holds_slot;
    });
    if (free) return slot;
  }
  return -1;
}

void Membership::Spawn(const Place& place, double now) {
  Host& host = hosts_[place.host];
  v1::SpawnSlots spawn;
  const int shares = place.listed->shares;
  if (host.shares != shares) spawn.set_shares(shares);
  for (int share = 0; share < shares && spawn.seats_size() < place.free; ++share) {
    const int slot = FreeSlot(place.host);
    if (slot < 0) break;
    if (ShareIsOut(host.name, share) || !ShareFree(place.host, share)) continue;
    const double until = budget_.Until(host.name, share);
    WakeAt(until, now);
    if (until > now) continue;
    Member member;
    member.host = place.host;
    member.slot = slot;
    host.next_slot = (slot + 1) % kMaxLocalRanks;
    member.share = share;
    member.born_at = now;
    members_.push_back(member);
    const uint64_t number = members_.size();
    staying_.insert(number);
    v1::Seat& seat = *spawn.add_seats();
    seat.set_member(number);
    seat.set_slot(slot);
    seat.set_share(share);
    // Nobody else gets what one has read of it.
    seat.set_stdin((stdin_rank_ == -2 && history_.empty()) ||
                   static_cast<int>(number) == stdin_rank_ + 1);
  }
  if (spawn.seats_size() == 0) return;
  host.shares = shares;
  *spawn.mutable_expected() = ProposeNext(World(staying_));
  MembershipAction action = {MembershipAction::kSpawn, place.host};
  action.spawn = std::move(spawn);
  actions_.push_back(std::move(action));
}

// Nobody works there, nobody is to, and the last of their output has come.
void Membership::StopIdleHosts(const std::vector<Place>& places) {
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    const Host::Phase phase = hosts_[host].phase;
    if (phase == Host::kStopping || phase == Host::kGone) continue;
    const bool needed = std::any_of(places.begin(), places.end(), [host](const Place& place) {
      return place.host == host && place.needed;
    });
    const bool used = std::any_of(members_.begin(), members_.end(), [host](const Member& member) {
      return member.host == host && member.holds_slot;
    });
    const bool in_epoch = !AllQuiet() && std::find(current_.hosts.begin(), current_.hosts.end(),
                                                   host) != current_.hosts.end();
    if (needed || used || in_epoch) continue;
    hosts_[host].phase = Host::kStopping;
    actions_.push_back(
        {MembershipAction::kStopHost, host, "the job has no more use for this host"});
  }
}

void Membership::FailHost(int host, const std::string& why, double now) {
  const std::string& name = hosts_[host].name;
  NoteFailure(absl::StrCat("host ", name, ": ", why));
  const bool known = hosts_[host].drained && hosts_[host].phase == Host::kGone;
  if (known && cooldown_.Cools(name, now)) return;
  const double length = cooldown_.Failed(name, now);
  Say(absl::StrFormat("host %s: %s; it is left alone for %g s", name, why, length));
}

}  // namespace hvd
