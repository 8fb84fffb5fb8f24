// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/batch_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

namespace hvd::rt {
namespace {

// A delay of nothing would disarm the timer.
void Set(int fd, std::chrono::nanoseconds delay) {
  delay = std::max(delay, std::chrono::nanoseconds(1));
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(delay.count() / 1000000000);
  when.it_value.tv_nsec = static_cast<long>(delay.count() % 1000000000);
  timerfd_settime(fd, 0, &when, nullptr);
}

}  // namespace

BatchTimer::BatchTimer() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {}
BatchTimer::~BatchTimer() { close(fd_); }

void BatchTimer::Arm(std::chrono::nanoseconds delay) {
  if (armed_.load(std::memory_order_relaxed) || armed_.exchange(true)) return;
  Set(fd_, delay);
}

void BatchTimer::ArmNow() {
  armed_.store(true);
  Set(fd_, std::chrono::nanoseconds(1));
}

void BatchTimer::Wait() {
  uint64_t times = 0;
  [[maybe_unused]] const ssize_t n = read(fd_, &times, sizeof(times));
  armed_.store(false);
}

}  // namespace hvd::rt
