// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/scheduler.h"

#include <algorithm>
#include <utility>

namespace hvd::elastic_simulator {

void Scheduler::Pause(Actor* actor, double until) {
  actor->paused_until = std::max(actor->paused_until, until);
  At(until, [] {});
}

// From a random one on, the first that is ready and not too lazy.
Actor* Scheduler::Choose() {
  const size_t count = actors_.size();
  if (count == 0) return nullptr;
  const size_t first = random_.Below(count);
  Actor* lazy = nullptr;
  for (size_t i = 0; i < count; ++i) {
    Actor* const actor = actors_[(first + i) % count];
    if (now_ < actor->paused_until || !actor->Ready()) continue;
    if (actor->laziness == 0 || random_.OneIn(actor->laziness + 1)) return actor;
    if (lazy == nullptr) lazy = actor;
  }
  return lazy;
}

// Mostly some microseconds, now and then milliseconds.
void Scheduler::PassTime() {
  now_ += random_.OneIn(32) ? random_.Seconds(0, 2e-3) : random_.Seconds(0, 4e-5);
}

bool Scheduler::Turn() {
  ++turns_;
  if (!timers_.empty() && timers_.begin()->first <= now_) {
    const auto due = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    due();
    return true;
  }
  if (Actor* const actor = Choose(); actor != nullptr) {
    actor->Step();
    PassTime();
    return true;
  }
  if (timers_.empty()) return false;
  now_ = std::max(now_, timers_.begin()->first);
  return true;
}

}  // namespace hvd::elastic_simulator
