// SPDX-License-Identifier: Apache-2.0
// The stop sequence as a plan: when to ask, when to kill, when to give up. Pure: events and the
// time in, what to do out.
#pragma once

#include <chrono>
#include <optional>

#include "base/loop.h"

namespace hvd::daemon {

class StopPlan {
 public:
  enum class Do {
    kNothing,
    kTermAll,  // CONT and TERM to every living rank, and to what dead ones left
    kKillAll,  // CONT and KILL to the whole containment
    kCount,    // have the shim count who is left: it could not be killed
    kEndShim,  // it does not answer
    kDone,     // nothing is left
  };

  // Asks for the stop. Asked again it may cut the grace short, with `kill` to nothing.
  Do Begin(TimePoint now, bool kill, std::chrono::duration<double> grace);
  // Nothing lives in the containment.
  Do Emptied();
  // The shim has counted who is left.
  void Counted();
  // The deadline has passed.
  Do Due(TimePoint now);

  bool begun() const { return phase_ != Phase::kIdle; }
  bool done() const { return phase_ == Phase::kDone; }
  std::optional<TimePoint> deadline() const { return deadline_; }

 private:
  enum class Phase { kIdle, kTerm, kKill, kCount, kDone };

  Do Kill(TimePoint now);

  Phase phase_ = Phase::kIdle;
  std::optional<TimePoint> deadline_;
};

}  // namespace hvd::daemon
