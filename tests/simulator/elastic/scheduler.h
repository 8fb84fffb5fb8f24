// SPDX-License-Identifier: Apache-2.0
// Who does what next, and what time it is: drawn from the seed. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "tests/simulator/random.h"

namespace hvd::elastic_simulator {

using rt::simulator::Random;

// Somebody who does one thing at a time: a process, a thread of hvdd, a link that brings a message.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual bool Ready() const = 0;
  virtual void Step() = 0;

  // It does nothing until then.
  double paused_until = 0;
  // The more, the seldomer it gets its turn.
  uint32_t laziness = 0;
};

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  double now() const { return now_; }
  Random& random() { return random_; }

  // The actor outlives it, or is removed.
  void Add(Actor* actor) { actors_.push_back(actor); }
  void Remove(Actor* actor) { std::erase(actors_, actor); }
  void At(double when, std::function<void()> what) { timers_.emplace(when, std::move(what)); }
  void After(double seconds, std::function<void()> what) { At(now_ + seconds, std::move(what)); }
  void Pause(Actor* actor, double until);

  // One step of somebody, or the next time at which something is due. False: nothing will ever
  // happen any more.
  bool Turn();
  uint64_t turns() const { return turns_; }

 private:
  Actor* Choose();
  void PassTime();

  Random random_;
  double now_ = 1;
  uint64_t turns_ = 0;
  std::vector<Actor*> actors_;
  std::multimap<double, std::function<void()>> timers_;
};

}  // namespace hvd::elastic_simulator
