// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/places.h"

#include <algorithm>
#include <utility>

#include "cli/membership/next_epoch.h"

namespace hvd::cli {

// Members that live keep their places; the places that are left go to the older hosts first.
std::vector<Places::Place> Places::Find(double now) const {
  std::vector<Place> places;
  const Staying& staying = *parts_.staying;
  const size_t taken =
      staying.members().size() - staying.kept().size() + parts_.roster->ended_well().size();
  int room = staying.most() - static_cast<int>(taken);
  for (const BookHost& listed : parts_.shares->list()) {
    Place place = {&listed, parts_.roster->LiveHost(listed.name)};
    const int living = LivingAt(place.host);
    const int usable =
        place.host < 0 ? parts_.shares->UsableAnew(listed) : parts_.shares->Usable(listed);
    if (IsUsable(place, now)) place.free = std::min(room, std::max(0, usable - living));
    place.needed = living > 0 || place.free > 0;
    room -= place.free;
    places.push_back(place);
  }
  return places;
}

bool Places::IsUsable(const Place& place, double now) const {
  const std::string& name = place.listed->name;
  if (place.host < 0) return !parts_.shares->IsLeftOut(name) && !parts_.shares->Cools(name, now);
  const RosterHost& host = parts_.roster->host(place.host);
  return !host.drained && host.phase != RosterHost::kStopping;
}

int Places::LivingAt(int host) const {
  const auto& staying = parts_.staying->members();
  const auto& ended = parts_.roster->ended_well();
  const auto lives = std::count_if(staying.begin(), staying.end(), [&](uint64_t member) {
    return parts_.roster->Of(member).host == host;
  });
  const auto ends = std::count_if(ended.begin(), ended.end(), [&](const auto& entry) {
    return parts_.roster->Of(entry.first).host == host;
  });
  return static_cast<int>(lives + ends);
}

bool Places::WillSpawnAtState(double now) const {
  const std::vector<Place> places = Find(now);
  return std::any_of(places.begin(), places.end(), [this](const Place& place) {
    if (place.host < 0 || place.free <= 0) return false;
    const RosterHost& host = parts_.roster->host(place.host);
    return host.phase == RosterHost::kReady && host.kept.newest > 0;
  });
}

void Places::ReachAndSpawn(double now) {
  for (const BookHost& listed : parts_.shares->list()) {
    parts_.wants->WakeAt(parts_.shares->CoolsUntil(listed.name), now);
  }
  std::vector<Place> places = Find(now);
  for (Place& place : places) {
    if (place.free <= 0) continue;
    const std::string& name = place.listed->name;
    if (place.host < 0) {
      parts_.shares->Renew(name);
      place.host = parts_.roster->AddHost(name);
      parts_.wants->Add({MembershipAction::kReach, place.host, name});
    } else if (parts_.roster->host(place.host).phase == RosterHost::kReady) {
      Spawn(place, now);
    }
  }
  StopIdleHosts(places);
}

void Places::Spawn(const Place& place, double now) {
  RosterHost& host = parts_.roster->host(place.host);
  v1::SpawnSlots spawn;
  const int shares = place.listed->shares;
  if (host.shares != shares) spawn.set_shares(shares);
  for (int share = 0; share < shares && spawn.seats_size() < place.free; ++share) {
    const int slot = parts_.roster->FreeSlot(place.host);
    if (slot < 0) break;
    const bool out = parts_.shares->IsOut(host.name, share);
    if (out || !parts_.roster->ShareFree(place.host, share)) continue;
    const double until = parts_.shares->Until(host.name, share);
    parts_.wants->WakeAt(until, now);
    if (until > now) continue;
    RosterMember member;
    member.host = place.host;
    member.slot = slot;
    member.share = share;
    member.born_at = now;
    AddSeat(member, &spawn);
  }
  if (spawn.seats_size() == 0) return;
  host.shares = shares;
  *spawn.mutable_expected() = ProposeNext(parts_.epochs->World(parts_.staying->members()));
  MembershipAction action = {MembershipAction::kSpawn, place.host};
  action.spawn = std::move(spawn);
  parts_.wants->Add(std::move(action));
}

void Places::AddSeat(const RosterMember& member, v1::SpawnSlots* spawn) {
  const uint64_t number = parts_.roster->Add(member);
  parts_.staying->Add(number);
  v1::Seat& seat = *spawn->add_seats();
  seat.set_member(number);
  seat.set_slot(member.slot);
  seat.set_share(member.share);
  // Nobody else gets what one has read of it.
  seat.set_stdin((stdin_rank_ == -2 && parts_.epochs->history().empty()) ||
                 static_cast<int>(number) == stdin_rank_ + 1);
}

void Places::StopIdleHosts(const std::vector<Place>& places) {
  for (int host = 0; host < static_cast<int>(parts_.roster->hosts().size()); ++host) {
    if (!IsIdle(host, places)) continue;
    parts_.roster->host(host).phase = RosterHost::kStopping;
    parts_.wants->Add({MembershipAction::kStopHost, host, "the job has no more use for this host"});
  }
}

// Nobody works there, nobody is to, and the last of their output has come.
bool Places::IsIdle(int host, const std::vector<Place>& places) const {
  const RosterHost::Phase phase = parts_.roster->host(host).phase;
  if (phase == RosterHost::kStopping || phase == RosterHost::kGone) return false;
  const bool needed = std::any_of(places.begin(), places.end(), [host](const Place& place) {
    return place.host == host && place.needed;
  });
  const auto& members = parts_.roster->members();
  const bool used = std::any_of(members.begin(), members.end(), [host](const auto& member) {
    return member.host == host && member.holds_slot;
  });
  return !needed && !used && (parts_.epochs->AllQuiet() || !parts_.epochs->HasHost(host));
}

}  // namespace hvd::cli
