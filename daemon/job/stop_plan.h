// SPDX-License-Identifier: Apache-2.0
// The stop sequence as a plan: when to ask, when to kill, when to give up. Pure: events and the
// time in, what to do out.
#pragma once

#include <chrono>
#include <optional>

#include "base/loop.h"

namespace hvd {

class StopPlan {
 public:
  enum class Do {
    kNothing,
    kTermAll,  // CONT and TERM to every living rank, and to what dead ones left
    kKillAll,  // CONT and KILL to the whole containment
    kCount,    // count who is left: it could not be killed
    kDone,     // nothing is left
  };

  explicit StopPlan(std::chrono::duration<double> grace) : grace_(grace) {}

  // Asks for the stop; again with `kill` cuts the grace short.
  Do Begin(TimePoint now, bool kill);
  // Nothing lives in the containment.
  Do Emptied();
  // The deadline has passed.
  Do Due(TimePoint now);

  bool begun() const { return phase_ != Phase::kIdle; }
  bool done() const { return phase_ == Phase::kDone; }
  std::optional<TimePoint> deadline() const { return deadline_; }

 private:
  enum class Phase { kIdle, kTerm, kKill, kDone };

  Do Kill(TimePoint now);

  const std::chrono::duration<double> grace_;
  Phase phase_ = Phase::kIdle;
  std::optional<TimePoint> deadline_;
};

}  // namespace hvd
