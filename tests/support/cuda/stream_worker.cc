// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/stream_worker.h"

#include <utility>

namespace hvd::rt {

void Completion::Set() {
  const std::lock_guard<std::mutex> lock(mutex_);
  set_ = true;
  changed_.notify_all();
}

bool Completion::is_set() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return set_;
}

void Completion::Wait() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return set_; });
}

StreamWorker::StreamWorker(std::chrono::microseconds delay)
    : delay_(delay), thread_([this] { Run(); }) {}

StreamWorker::~StreamWorker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void StreamWorker::Push(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_all();
}

bool StreamWorker::idle() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return work_.empty() && !busy_;
}

// The delay is the device's own slowness, which is what this stands in for.
void StreamWorker::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    work();
    lock.lock();
    busy_ = false;
  }
}

}  // namespace hvd::rt
