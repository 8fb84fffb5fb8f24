// SPDX-License-Identifier: Apache-2.0
// The executor's role. One thread at a time has it: one that waits (caller-runs), or the engine's
// own, which looks a while after a submission whether requests are pending and nobody waits.
// Whoever leaves the role with work pending offers it on (Engine::OfferRole).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "runtime/engine/batch_timer.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

class ExecutorRole {
 public:
  using Clock = std::chrono::steady_clock;

  // The engine's lock, for a scope or parts of one.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(ExecutorRole* role) ABSL_EXCLUSIVE_LOCK_FUNCTION(kEngineLock)
        : lock_(role->mutex_) {}
    // If it is free: look whether it is held() before anything else. (clang takes it as held.)
    Lock(ExecutorRole* role, std::try_to_lock_t) ABSL_EXCLUSIVE_LOCK_FUNCTION(kEngineLock)
        : lock_(role->mutex_, std::try_to_lock) {}
    ~Lock() ABSL_UNLOCK_FUNCTION() {}
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    bool held() const { return lock_.owns_lock(); }
    void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
    void Relock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }

   private:
    friend class ExecutorRole;
    std::unique_lock<std::mutex> lock_;
  };

  // The role, for a scope; the lock is free meanwhile. REQUIRES: nobody has the role.
  class ABSL_SCOPED_LOCKABLE Term {
   public:
    // `runner`: the request of this thread's Engine::Run, with whose end the role may end
    // (Request::ended_role): then the lock stays free.
    Term(ExecutorRole* role, Lock* lock, Request* runner = nullptr)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(kExecutor)
            ABSL_UNLOCK_FUNCTION(kEngineLock) ABSL_NO_THREAD_SAFETY_ANALYSIS : role_(*role),
                                                                               lock_(*lock),
                                                                               runner_(runner) {
      role_.taken_ = true;
      role_.runner_ = runner;
      role_.caller_runs_ = runner != nullptr;
      lock_.Unlock();
    }
    ~Term() ABSL_UNLOCK_FUNCTION()
        ABSL_EXCLUSIVE_LOCK_FUNCTION(kEngineLock) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (runner_ != nullptr && runner_->course.ended_role) return;
      lock_.Relock();
      role_.taken_ = false;
      role_.runner_ = nullptr;
      role_.caller_runs_ = false;
    }
    Term(const Term&) = delete;
    Term& operator=(const Term&) = delete;

   private:
    ExecutorRole& role_;
    Lock& lock_;
    Request* const runner_;
  };

  bool taken() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return taken_; }
  // Nobody else executes as long as this thread has the lock: it may touch what is the executor's.
  void AssertFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock)
      ABSL_ASSERT_EXCLUSIVE_LOCK(kExecutor) {}
  // The runner's request is over, and so is its thread's work: it leaves the role here.
  void EndWith(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    if (request != runner_) return;
    runner_ = nullptr;
    caller_runs_ = false;
    taken_ = false;
    request->course.ended_role = true;
  }
  // Whose request ends in what follows keeps the role until all is over.
  void KeepToTheEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { runner_ = nullptr; }

  // Any thread: those who would like the role.
  int waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // The program's threads that are inside a call which waits: those, and the one that executes in
  // Engine::Run.
  int callers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return waiting() + (caller_runs_ ? 1 : 0);
  }
  int AddWaiter() { return waiting_.fetch_add(1) + 1; }
  int RemoveWaiter() { return waiting_.fetch_sub(1) - 1; }

  // Until a request is done or has finished, or the role is free; may end without cause.
  void Await(Lock* lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { changed_.wait(lock->lock_); }
  void AwaitUntil(Lock* lock, Clock::time_point end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    changed_.wait_until(lock->lock_, end);
  }
  void NotifyAll() { changed_.notify_all(); }

  // The timer that wakes the engine thread.
  BatchTimer& timer() { return timer_; }
  // The engine is being destroyed: whoever executes comes back.
  void Stop() { stopping_ = true; }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  BatchTimer timer_;
  bool taken_ ABSL_GUARDED_BY(kEngineLock) = false;
  Request* runner_ ABSL_GUARDED_BY(kEngineLock) = nullptr;
  bool caller_runs_ ABSL_GUARDED_BY(kEngineLock) = false;
  std::atomic<int> waiting_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace hvd::rt
