// SPDX-License-Identifier: Apache-2.0
// Continues this process, should it be stopped when a time has come: the kernel's timer sends it
// SIGCONT, which needs nobody who is awake. One thread at a time; a fork does not inherit it.
#pragma once

#include <ctime>

#include "base/clock.h"

namespace hvd {

class ContinueTimer {
 public:
  ContinueTimer();  // where the kernel gives no timer, nothing is continued
  ~ContinueTimer();
  ContinueTimer(const ContinueTimer&) = delete;
  ContinueTimer& operator=(const ContinueTimer&) = delete;

  // TimePoint::max(): never.
  void Set(TimePoint when);

 private:
  timer_t timer_{};
  bool made_ = false;
  TimePoint when_ = TimePoint::max();
};

}  // namespace hvd
