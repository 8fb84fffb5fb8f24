// SPDX-License-Identifier: Apache-2.0
// Wakes the engine thread a while after the first of some requests, so that those who submit a few
// and wait at once never pay for its wake-up: arming is one short system call, and nothing while it
// is armed already. Disarmed it costs nothing.
#pragma once

#include <atomic>
#include <chrono>

namespace hvd::rt {

class BatchTimer {
 public:
  BatchTimer();
  ~BatchTimer();
  BatchTimer(const BatchTimer&) = delete;
  BatchTimer& operator=(const BatchTimer&) = delete;

  // From any thread. Wait returns once after `delay`, or earlier if armed so before.
  void Arm(std::chrono::nanoseconds delay);
  void ArmNow();
  // The engine thread's.
  void Wait();

 private:
  const int fd_;
  std::atomic<bool> armed_{false};
};

}  // namespace hvd::rt
