// SPDX-License-Identifier: Apache-2.0
#include "cli/job/members.h"

#include <algorithm>
#include <numeric>

namespace hvd::cli {
namespace {

constexpr size_t kMostOld = 64;  // epochs whose ranks somebody may still tell of

}  // namespace

Members::Members(const Topology& topology)
    : topology_(topology), by_rank_(topology.size()), hosts_(topology.hosts().size()) {
  std::iota(by_rank_.begin(), by_rank_.end(), uint64_t{1});
  std::iota(hosts_.begin(), hosts_.end(), 0);
}

int Members::RankOf(uint64_t member) const {
  const auto found = std::find(by_rank_.begin(), by_rank_.end(), member);
  return found == by_rank_.end() ? -1 : static_cast<int>(found - by_rank_.begin());
}

v1::EpochPropose Members::Propose() {
  v1::EpochPropose propose;
  propose.set_epoch(++proposed_);
  for (int host = 0; host < static_cast<int>(topology_.hosts().size()); ++host) {
    v1::EpochHost& listed = *propose.add_hosts();
    listed.set_host(host);
    listed.set_name(topology_.hosts()[host].name);
    *listed.mutable_members() = Seats(host, {}).seats();
    for (const int rank : topology_.hosts()[host].numbers) listed.add_ranks(rank);
  }
  return propose;
}

void Members::Adopt(const v1::EpochPropose& propose) {
  old_[proposed_] = std::move(by_rank_);
  if (old_.size() > kMostOld) old_.erase(old_.begin());
  proposed_ = propose.epoch();
  by_rank_.clear();
  hosts_.clear();
  for (const v1::EpochHost& host : propose.hosts()) {
    hosts_.push_back(static_cast<int>(host.host()));
    for (const v1::Seat& seat : host.members()) by_rank_.push_back(seat.member());
  }
}

int Members::PlaceOf(int host) const {
  const auto found = std::find(hosts_.begin(), hosts_.end(), host);
  return found == hosts_.end() ? -1 : static_cast<int>(found - hosts_.begin());
}

uint64_t Members::MemberAt(uint64_t epoch, uint32_t rank) const {
  const auto found = old_.find(epoch);
  const std::vector<uint64_t>& by_rank = found == old_.end() ? by_rank_ : found->second;
  return rank < by_rank.size() ? by_rank[rank] : 0;
}

v1::SpawnSlots Members::Seats(int host, const std::function<bool(int rank)>& takes_stdin) const {
  v1::SpawnSlots spawn;
  for (int slot = 0; slot < topology_.hosts()[host].ranks; ++slot) {
    const int rank = topology_.rank_at(host, slot);
    v1::Seat& seat = *spawn.add_seats();
    seat.set_member(by_rank_[rank]);
    seat.set_slot(slot);
    seat.set_share(slot);
    seat.set_stdin(takes_stdin && takes_stdin(rank));
  }
  return spawn;
}

}  // namespace hvd::cli
