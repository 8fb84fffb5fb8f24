// SPDX-License-Identifier: Apache-2.0
// A stream of a stand-in's device: what is pushed runs in order, on a thread of its own, and later
// than it was asked for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hvd::rt {

// Is over once, for all who wait. Any thread.
class Completion {
 public:
  void Set();
  bool is_set() const;
  void Wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

class StreamWorker {
 public:
  // Each piece of work begins `delay` after the one before has ended, or after it was pushed.
  explicit StreamWorker(std::chrono::microseconds delay);
  ~StreamWorker();  // when all has run

  void Push(std::function<void()> work);
  bool idle() const;

 private:
  void Run();

  const std::chrono::microseconds delay_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace hvd::rt
