// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/roster.h"

#include <algorithm>

#include "proto/page/host_page.h"

namespace hvd::cli {

int Roster::AddHost(const std::string& name) {
  hosts_.push_back({RosterHost::kReaching, name});
  return static_cast<int>(hosts_.size()) - 1;
}

int Roster::LiveHost(const std::string& name) const {
  for (int host = static_cast<int>(hosts_.size()) - 1; host >= 0; --host) {
    if (hosts_[host].name == name && hosts_[host].phase != RosterHost::kGone) return host;
  }
  return -1;
}

void Roster::LoseHost(int host) {
  hosts_[host].phase = RosterHost::kGone;
  hosts_[host].kept = {};
  for (RosterMember& member : members_) {
    if (member.host == host) member.alive = member.holds_slot = member.stands = false;
  }
}

int Roster::FreeSlot(int host) const {
  for (int step = 0; step < kMaxLocalRanks; ++step) {
    const int slot = (hosts_[host].next_slot + step) % kMaxLocalRanks;
    const bool free = std::none_of(members_.begin(), members_.end(), [&](const auto& member) {
      return member.host == host && member.slot == slot && member.holds_slot;
    });
    if (free) return slot;
  }
  return -1;
}

bool Roster::ShareFree(int host, int share) const {
  for (uint64_t number = 1; number <= newest(); ++number) {
    const RosterMember& member = Of(number);
    const bool there =
        member.alive || (member.lingers && member.holds_slot) || ended_well_.count(number) != 0;
    if (member.host == host && member.share == share && there) return false;
  }
  return true;
}

uint64_t Roster::Add(const RosterMember& member) {
  members_.push_back(member);
  hosts_[member.host].next_slot = (member.slot + 1) % kMaxLocalRanks;
  return newest();
}

bool Roster::AnyStands() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const RosterMember& member) { return member.alive && member.stands; });
}

bool Roster::AnyLives() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const RosterMember& member) { return member.alive; });
}

void Roster::NumberRanks(const std::vector<uint64_t>& by_rank) {
  for (RosterMember& member : members_) member.last_rank = -1;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    Of(by_rank[rank]).last_rank = static_cast<int>(rank);
  }
}

}  // namespace hvd::cli
