// SPDX-License-Identifier: Apache-2.0
// Whether the job's leader has told the other hosts that the epoch has ended. Sets of the job wait
// for it, for a moment, before their transport stops: the leader's words are the better ones.
#pragma once

#include <chrono>

#include "base/mutex.h"

namespace hvd::rt {

// Threads: any.
class EndTold {
 public:
  void Tell() {
    const MutexLock lock(&mutex_);
    told_ = true;
    changed_.NotifyAll();
  }
  void AwaitUntil(std::chrono::steady_clock::time_point end) {
    const MutexLock lock(&mutex_);
    while (!told_ && changed_.WaitUntil(&mutex_, end)) {
    }
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hvd::rt
