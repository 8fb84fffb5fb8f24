#include "cli/job/members.h"

#include <algorithm>
#include <numeric>

namespace hvd {

Members::Members(const Topology& topology) : topology_(topology), by_rank_(topology.size()) {
  std::iota(by_rank_.begin(), by_rank_.end(), uint64_t{1});
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
  }
  return propose;
}

v1::SpawnSlots Members::Seats(int host, const std::function<bool(int rank)>& takes_stdin) const {
  v1::SpawnSlots spawn;
  for (int slot = 0; slot < topology_.hosts()[host].ranks; ++slot) {
    const int rank = topology_.first_rank(host) + slot;
    v1::Seat& seat = *spawn.add_seats();
    seat.set_member(by_rank_[rank]);
    seat.set_slot(slot);
    seat.set_stdin(takes_stdin && takes_stdin(rank));
  }
  return spawn;
}

}  // namespace hvd
