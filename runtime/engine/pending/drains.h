// SPDX-License-Identifier: Apache-2.0
// Who waits until all that this rank had submitted by then has finished.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace hvd::rt {

// One such wait; its waiter's.
class Drain {
 public:
  bool over() const { return left_.load(std::memory_order_acquire) <= 0; }  // any thread

  // The rest is Drains', under its lock. `last`: the newest submission that counts; `left`: those
  // that have not finished.
  void Begin(uint64_t last, int left) {
    last_ = last;
    left_ = left;
  }
  void Finished(uint64_t sequence) { left_ -= sequence <= last_ ? 1 : 0; }
  void End() { left_ = 0; }

 private:
  uint64_t last_ = 0;
  std::atomic<int> left_{0};
};

// All of them. Not thread-safe: under the engine's lock.
class Drains {
 public:
  void Add(Drain* drain) { waiting_.push_back(drain); }
  void Remove(Drain* drain) { std::erase(waiting_, drain); }
  bool any() const { return !waiting_.empty(); }
  // The submission of that number has finished.
  void Finished(uint64_t sequence) {
    for (Drain* drain : waiting_) drain->Finished(sequence);
  }
  // Nothing is pending any more.
  void EndAll() {
    for (Drain* drain : waiting_) drain->End();
  }

 private:
  std::vector<Drain*> waiting_;
};

}  // namespace hvd::rt
