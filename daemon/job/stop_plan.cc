// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/stop_plan.h"

#include "proto/deadlines.h"

namespace hvd::daemon {

StopPlan::Do StopPlan::Begin(TimePoint now, bool kill, std::chrono::duration<double> grace) {
  if (phase_ == Phase::kDone) return Do::kNothing;
  const bool killed = phase_ == Phase::kKill || phase_ == Phase::kCount;
  if (kill) return killed ? Do::kNothing : Kill(now);
  const TimePoint until = now + std::chrono::duration_cast<Clock::duration>(grace);
  if (phase_ == Phase::kTerm && until < *deadline_) deadline_ = until;
  if (phase_ != Phase::kIdle) return Do::kNothing;
  phase_ = Phase::kTerm;
  deadline_ = until;
  return Do::kTermAll;
}

StopPlan::Do StopPlan::Emptied() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kDone) return Do::kNothing;
  Counted();
  return Do::kDone;
}

void StopPlan::Counted() {
  phase_ = Phase::kDone;
  deadline_.reset();
}

StopPlan::Do StopPlan::Due(TimePoint now) {
  if (!deadline_.has_value() || now < *deadline_) return Do::kNothing;
  if (phase_ == Phase::kTerm) return Kill(now);
  if (phase_ == Phase::kKill) {
    phase_ = Phase::kCount;
    deadline_ = now + kCountPatience;
    return Do::kCount;
  }
  Counted();
  return Do::kEndShim;
}

StopPlan::Do StopPlan::Kill(TimePoint now) {
  phase_ = Phase::kKill;
  deadline_ = now + kKillPatience;
  return Do::kKillAll;
}

}  // namespace hvd::daemon
