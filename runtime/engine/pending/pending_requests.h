// SPDX-License-Identifier: Apache-2.0
// The requests that this rank has submitted and has not seen done: names, requests whose turn is
// taken, who waits for how many, and the error that ended all of it. Requests that are done, but
// that a device has not finished, are only counted: whoever drains waits for them too. (How a
// request ends is the Completer's.)
//
// Under the engine's lock, but for the counts.
#pragma once

#include <atomic>
#include <deque>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/engine/pending/drains.h"
#include "runtime/engine/pending/names.h"
#include "runtime/engine/request/engine_lock.h"

namespace hvd::rt {

class PendingRequests {
 public:
  Names& names() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return names_; }
  // The first error; sticks. Until then OK.
  const absl::Status& broken() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return broken_; }
  // Any thread: those that are not done.
  int count() const { return count_.load(std::memory_order_acquire); }
  // Any thread: those that have not finished.
  int open() const { return count() + launched_.load(std::memory_order_relaxed); }
  uint64_t submissions() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return submissions_; }

  // The number of one that is submitted now, the first being 1.
  uint64_t NextSequence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return ++submissions_; }
  void Add() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { AddCount(1); }
  // An unnamed one that never goes past one that came before it: its turn is taken, or others wait
  // already.
  bool MustWait(const Request& request, const LocalName& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return request.unnamed && (name.pending != nullptr || !deferred_.empty());
  }
  void Defer(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  bool has_deferred() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return !deferred_.empty();
  }
  // The oldest whose turn is free, which is pending then; null: there is none.
  Request* TakeDeferred() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // It has finished: no more pending.
  void Remove(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    FreeName(*request);
    AddCount(-1);
    drains_.Finished(request->course.sequence);
  }
  // A device has it: no more pending, but whoever drains waits on. Then Finished, once.
  void Launched(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    FreeName(*request);
    launched_.store(launched_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    AddCount(-1);  // the last: who sees it sees the other
  }
  void Finished(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    launched_.store(launched_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    drains_.Finished(sequence);
  }
  // The epoch is broken: nothing is pending any more. `why`: unless there was an error before.
  // Calls `end` with each request that was pending under a name. Needs no memory: there may be
  // none.
  void Break(const absl::Status& why, absl::FunctionRef<void(Request*)> end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // From now on `drain` waits for all that has been submitted and has not finished.
  void BeginDrain(Drain* drain) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  Drains& drains() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return drains_; }

  // Names that this rank has marked directly, and those deferred: what it may still have to mark on
  // the board, each as often.
  std::vector<std::string_view> Owed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  std::vector<LocalName*> Named() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return names_.Pending();
  }
  const std::deque<Request*>& deferred() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return deferred_;
  }

 private:
  // A group's name is its first request's.
  static void FreeName(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    if (request.course.is_other || request.course.local == nullptr) return;
    request.course.local->pending = nullptr;
  }
  void AddCount(int more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    count_.store(count() + more, std::memory_order_release);
  }

  Names names_ ABSL_GUARDED_BY(kEngineLock);
  absl::Status broken_ ABSL_GUARDED_BY(kEngineLock);
  std::atomic<int> count_{0}, launched_{0};  // written under the lock
  uint64_t submissions_ ABSL_GUARDED_BY(kEngineLock) = 0;
  std::deque<Request*> deferred_
      ABSL_GUARDED_BY(kEngineLock);  // whose turn is taken, and later ones
  Drains drains_ ABSL_GUARDED_BY(kEngineLock);
};

}  // namespace hvd::rt
