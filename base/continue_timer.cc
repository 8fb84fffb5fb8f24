// SPDX-License-Identifier: Apache-2.0
#include "base/continue_timer.h"

#include <algorithm>
#include <chrono>
#include <csignal>

namespace hvd {

ContinueTimer::ContinueTimer() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  made_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
}

ContinueTimer::~ContinueTimer() {
  if (made_) timer_delete(timer_);
}

void ContinueTimer::Set(TimePoint when) {
  if (!made_ || when == when_) return;
  when_ = when;
  itimerspec at{};  // zero: never
  if (when != TimePoint::max()) {
    const auto since = std::max(when.time_since_epoch(), Clock::duration(1));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    at.it_value.tv_sec = seconds.count();
    at.it_value.tv_nsec = std::chrono::nanoseconds(since - seconds).count();
  }
  timer_settime(timer_, TIMER_ABSTIME, &at, nullptr);
}

}  // namespace hvd
