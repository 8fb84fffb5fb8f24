// A lock in a host's shared memory, for some hundred nanoseconds at a time. A holder that is killed
// leaves it taken: whoever spins then finds the epoch aborted and goes without.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "proto/host_page.h"

namespace hvd {

// Spins with yields: a holder may have lost its core when there are more ranks than cores.
class SharedLock {
 public:
  SharedLock(std::atomic<uint32_t>* word, const HostPage* page) : word_(*word) {
    for (int spins = 0; word_.exchange(1, std::memory_order_acquire) != 0;) {
      while (word_.load(std::memory_order_relaxed) != 0) {
        if (++spins % 64 != 0) continue;
        sched_yield();
        if (page->aborted.load(std::memory_order_acquire) != 0) return;
      }
    }
    held_ = true;
  }
  ~SharedLock() {
    if (held_) word_.store(0, std::memory_order_release);
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  bool held() const { return held_; }  // false: the epoch is aborted

 private:
  std::atomic<uint32_t>& word_;
  bool held_ = false;
};

}  // namespace hvd
