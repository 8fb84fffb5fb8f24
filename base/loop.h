// SPDX-License-Identifier: Apache-2.0
// One thread's waiting point: descriptors, deadlines and calls posted by other threads. Whatever is
// bound to a loop is touched by its thread alone, so it needs no lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/continue_timer.h"
#include "base/descriptor.h"
#include "base/mutex.h"

namespace hvd {

class Loop {
 public:
  using OnReady = std::function<void(uint32_t events)>;
  using Call = std::function<void()>;
  using TimerId = std::pair<TimePoint, uint64_t>;

  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // The loop's thread only, or before Run. A handler may forget its own or any other descriptor.
  // The descriptor stays the caller's: Forget it before closing it.
  void Watch(int fd, uint32_t events, OnReady on_ready);
  void Change(int fd, uint32_t events);
  void Forget(int fd);
  TimerId At(TimePoint when, Call call);
  void Cancel(const TimerId& id) {
    thread_.AssertHeld();
    timers_.erase(id);
  }

  // From now on, if this process is stopped (SIGSTOP) and a deadline has been due for `overdue`,
  // the kernel continues it.
  void ContinueWhenDue(Clock::duration overdue);

  // Any thread.
  void Post(Call call);
  void Quit();

  // Runs until Quit.
  void Run();

 private:
  struct Watched {
    OnReady on_ready;
    uint32_t generation;
  };

  void RunPosted();
  void RunTimers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(thread_);
  int MillisecondsToNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(thread_);
  void SetContinueTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(thread_);

  Descriptor epoll_;
  Descriptor wake_;
  ThreadRole thread_;  // the one that calls Run; before that, whoever made the loop
  std::unordered_map<int, std::shared_ptr<Watched>> watched_ ABSL_GUARDED_BY(thread_);
  // May wrap: it tells a descriptor from the one before it of the same number, within what one wait
  // of the loop has returned.
  uint32_t generation_ ABSL_GUARDED_BY(thread_) = 0;
  std::map<TimerId, Call> timers_ ABSL_GUARDED_BY(thread_);
  uint64_t timer_number_ ABSL_GUARDED_BY(thread_) = 0;
  std::optional<ContinueTimer> continue_timer_ ABSL_GUARDED_BY(thread_);
  Clock::duration overdue_ ABSL_GUARDED_BY(thread_){};
  bool quit_ ABSL_GUARDED_BY(thread_) = false;

  Mutex mutex_;
  std::vector<Call> posted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd
