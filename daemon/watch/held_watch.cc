// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/held_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hvd::daemon {

std::vector<HeldSlot> HeldWatch::Take(const std::vector<int>& slots, TimePoint now) {
  std::map<int, TimePoint> since;
  std::vector<HeldSlot> held;
  for (const int slot : slots) {
    const auto known = since_.find(slot);
    since[slot] = known != since_.end() ? known->second : now;
    held.push_back({slot, SecondsOf(now - since[slot])});
  }
  since_ = std::move(since);
  return held;
}

bool HeldWatch::Due(const std::vector<HeldSlot>& held, double every_s, TimePoint now) {
  const double since_s = SecondsOf(now - std::exchange(looked_, now));
  return std::any_of(held.begin(), held.end(), [&](const HeldSlot& one) {
    const double before_s = std::max(0.0, one.held_s - since_s);
    return std::floor(one.held_s / every_s) > std::floor(before_s / every_s);
  });
}

}  // namespace hvd::daemon
