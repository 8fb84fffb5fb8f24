// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/attendance.h"

#include <iterator>
#include <limits>
#include <utility>

namespace hvd::daemon {

LocalEpoch* Attendance::Find(uint64_t number) {
  const auto found = epochs_.find(number);
  return found == epochs_.end() ? nullptr : &found->second;
}

const LocalEpoch* Attendance::Find(uint64_t number) const {
  const auto found = epochs_.find(number);
  return found == epochs_.end() ? nullptr : &found->second;
}

std::vector<uint64_t> Attendance::Numbers() const {
  std::vector<uint64_t> numbers;
  for (const auto& [number, epoch] : epochs_) numbers.push_back(number);
  return numbers;
}

uint64_t Attendance::NewestEntered() const {
  uint64_t newest = 0;
  for (const Attendant& member : members_) newest = std::max(newest, member.last_epoch);
  return newest;
}

uint64_t Attendance::NextFor(int slot) const {
  const uint64_t newest = members_[slot].newest();
  for (auto each = epochs_.upper_bound(newest); each != epochs_.end(); ++each) {
    if (each->second.plan() != nullptr && each->second.Lists(slot)) return each->first;
  }
  return 0;
}

void Attendance::Enter(int slot, uint64_t number) {
  Attendant& member = members_[slot];
  member.epoch_before = std::exchange(member.last_epoch, number);
  member.broke = false;
  ForgetRefusing();
}

void Attendance::Reset(int slot) {
  for (auto& [number, epoch] : epochs_) epoch.Reset(slot);
  members_[slot] = Attendant();
}

bool Attendance::NeverAsks(const Attendant& member) const {
  return elastic_ && !(member.gone.empty() && member.removed.empty());
}

void Attendance::ForgetRefusing() {
  uint64_t all_beyond = std::numeric_limits<uint64_t>::max();
  for (const Attendant& member : members_) {
    if (member.newest_plan == nullptr || NeverAsks(member)) continue;
    all_beyond = std::min(all_beyond, member.newest());
  }
  for (auto each = epochs_.begin(); each != epochs_.end() && each->first < all_beyond;) {
    each = each->second.Unused() ? epochs_.erase(each) : std::next(each);
  }
}

const EpochPlan* Attendance::plan(uint64_t number) const {
  const LocalEpoch* epoch = Find(number);
  return epoch == nullptr ? nullptr : epoch->plan().get();
}

bool Attendance::in_epoch(int slot) const {
  return std::any_of(epochs_.begin(), epochs_.end(),
                     [slot](const auto& entry) { return entry.second.IsInside(slot); });
}

bool Attendance::in_live_epoch(int slot) const {
  const LocalEpoch* last = Find(last_epoch(slot));
  return last != nullptr && !last->aborted() && in_epoch(slot);
}

bool Attendance::left(int slot) const {
  return joined_ever(slot) && !in_epoch(slot) && !members_[slot].broke;
}

bool Attendance::after_abort(int slot) const {
  const LocalEpoch* last = Find(last_epoch(slot));
  return (last != nullptr && last->aborted()) || refused(slot) || !closed_.empty();
}

}  // namespace hvd::daemon
