// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/stop_plan.h"

#include "proto/deadlines.h"

namespace hvd {

StopPlan::Do StopPlan::Begin(TimePoint now, bool kill) {
  if (phase_ == Phase::kDone) return Do::kNothing;
  if (kill) return phase_ == Phase::kKill ? Do::kNothing : Kill(now);
  if (phase_ != Phase::kIdle) return Do::kNothing;
  phase_ = Phase::kTerm;
  deadline_ = now + std::chrono::duration_cast<Clock::duration>(grace_);
  return Do::kTermAll;
}

StopPlan::Do StopPlan::Emptied() {
  if (phase_ != Phase::kTerm && phase_ != Phase::kKill) return Do::kNothing;
  phase_ = Phase::kDone;
  deadline_.reset();
  return Do::kDone;
}

StopPlan::Do StopPlan::Due(TimePoint now) {
  if (!deadline_.has_value() || now < *deadline_) return Do::kNothing;
  if (phase_ == Phase::kTerm) return Kill(now);
  phase_ = Phase::kDone;
  deadline_.reset();
  return Do::kCount;
}

StopPlan::Do StopPlan::Kill(TimePoint now) {
  phase_ = Phase::kKill;
  deadline_ = now + kKillPatience;
  return Do::kKillAll;
}

}  // namespace hvd
