// SPDX-License-Identifier: Apache-2.0
// What happens to calls on their way by the host, in the order in which it happened: told by the
// driver's threads, the engine's and the submitters', taken by the thread "hvd-gpu". Needs no
// memory.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/mutex.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

class StagedCall;
class StagedInbox;

// Lies in its call, which lives until it is taken.
struct StagedStep {
  enum class Kind {
    kBegin,     // the call is announced
    kAgreed,    // all ranks have announced request `index` of the call, or it has failed
    kArrived,   // the bytes of staged request `index` are in host memory
    kAnswered,  // staged request `index` is done
    kBack,      // the results are on the device
  };
  Kind kind = Kind::kBegin;
  size_t index = 0;
  StagedCall* call = nullptr;
  StagedInbox* inbox = nullptr;
  StagedStep* next = nullptr;
};

class StagedInbox {
 public:
  using Clock = std::chrono::steady_clock;

  // Once a step. Any thread; also one of the driver's, inside a stream.
  void Push(StagedStep* step) {
    const MutexLock lock(&mutex_);
    step->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = step;
    last_ = step;
    changed_.NotifyOne();
  }
  // Has Next return null, once there is no step.
  void Wake() {
    const MutexLock lock(&mutex_);
    woken_ = true;
    changed_.NotifyOne();
  }
  // Null: it was woken, or the time is over.
  StagedStep* Next(Clock::time_point end) {
    const MutexLock lock(&mutex_);
    while (first_ == nullptr && !woken_) {
      if (end == Clock::time_point::max()) {
        changed_.Wait(&mutex_);
      } else if (!changed_.WaitUntil(&mutex_, end)) {
        break;
      }
    }
    StagedStep* const step = first_;
    if (step == nullptr) {
      woken_ = false;
      return nullptr;
    }
    first_ = step->next;
    if (first_ == nullptr) last_ = nullptr;
    return step;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  StagedStep* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  StagedStep* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

// A request whose end is a step.
class StagedObserver : public RequestObserver {
 public:
  StagedStep step;
  void OnDone(Request*) override { step.inbox->Push(&step); }
};

}  // namespace hvd::rt
