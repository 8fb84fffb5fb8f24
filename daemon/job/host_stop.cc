// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/host_stop.h"

namespace hvd::daemon {

void HostStop::Begin(bool kill, std::chrono::duration<double> grace) {
  Do(plan_.Begin(Clock::now(), kill, grace));
  Arm();  // the grace may be shorter now
}

void HostStop::Emptied() { Do(plan_.Emptied()); }

void HostStop::Counted(int survivors) {
  loop_->Cancel(timer_);
  plan_.Counted();
  if (!survivors_.has_value()) survivors_ = survivors;
  handlers_.on_over();
}

void HostStop::Swept(int survivors) {
  plan_.Begin(Clock::now(), true, std::chrono::duration<double>(0));
  plan_.Emptied();
  Counted(survivors);
}

void HostStop::Do(StopPlan::Do what) {
  switch (what) {
    case StopPlan::Do::kNothing:
      return;
    case StopPlan::Do::kTermAll:
      handlers_.on_term();
      if (supervisor_ != nullptr) supervisor_->TermLeftovers();
      return Arm();
    case StopPlan::Do::kKillAll:
      if (supervisor_ != nullptr) supervisor_->KillAll();
      return Arm();
    case StopPlan::Do::kCount:
      if (supervisor_ == nullptr) return Counted(0);
      supervisor_->CountAll();
      return Arm();
    case StopPlan::Do::kEndShim:
      return supervisor_->KillShim();
    case StopPlan::Do::kDone:
      return Counted(0);
  }
}

void HostStop::Arm() {
  loop_->Cancel(timer_);
  if (!plan_.deadline().has_value()) return;
  timer_ = loop_->At(*plan_.deadline(), [this] { Do(plan_.Due(Clock::now())); });
}

}  // namespace hvd::daemon
