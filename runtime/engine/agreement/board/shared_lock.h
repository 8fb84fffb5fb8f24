// SPDX-License-Identifier: Apache-2.0
// A lock in a host's shared memory, for some hundred nanoseconds at a time. A holder that is killed
// leaves it taken: whoever spins then finds the epoch aborted and goes without.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "proto/page/host_page.h"

namespace hvd::rt {

class SharedLock {
 public:
  SharedLock() = default;  // not taken
  SharedLock(std::atomic<uint32_t>* word, const HostPage* page) { Take(word, page); }
  ~SharedLock() { Release(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  bool held() const { return word_ != nullptr; }  // false once taken: the epoch is aborted

  // Spins with yields: a holder may have lost its core when there are more ranks than cores.
  void Take(std::atomic<uint32_t>* word, const HostPage* page) {
    for (int spins = 0; word->exchange(1, std::memory_order_acquire) != 0;) {
      while (word->load(std::memory_order_relaxed) != 0) {
        if (++spins % 64 != 0) continue;
        sched_yield();
        if (page->aborted.load(std::memory_order_acquire) != 0) return;
      }
    }
    word_ = word;
  }
  void Release() {
    if (word_ != nullptr) word_->store(0, std::memory_order_release);
    word_ = nullptr;
  }

 private:
  std::atomic<uint32_t>* word_ = nullptr;
};

}  // namespace hvd::rt
