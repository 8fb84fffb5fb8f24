// SPDX-License-Identifier: Apache-2.0
// The requests that this rank has submitted and has not seen done: names, requests whose turn is
// taken, who waits for how many, requests whose observers are still to be told, and the error that
// ended all of it. Requests that are done, but that a device has not finished, are only counted:
// whoever drains waits for them too.
//
// Under the engine's lock, but for the counts.
#pragma once

#include <atomic>
#include <deque>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/pending/names.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/watch/stall.h"

namespace hvd {

class PendingRequests {
 public:
  // Somebody waits until all that has been submitted until now has finished.
  class Drain {
   public:
    bool over() const { return left_.load(std::memory_order_acquire) <= 0; }  // any thread

   private:
    friend class PendingRequests;
    uint64_t last_ = 0;  // of the submissions that count
    std::atomic<int> left_{0};
  };

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
    CountDown(request->course.sequence);
  }
  // A device has it: no more pending, but whoever drains waits on. Then Finished, once.
  void Launched(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    FreeName(*request);
    launched_.store(launched_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    AddCount(-1);  // the last: who sees it sees the other
  }
  void Finished(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    launched_.store(launched_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    CountDown(sequence);
  }
  // The end of every request that was submitted, with its status set. Then TakeEnded: whoever waits
  // may free it, but for those whose observers are still to be told.
  void End(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    if (request->observer != nullptr) request->course.next_ended = std::exchange(ended_, request);
    request->done.store(true, std::memory_order_release);
  }
  // All of them that have names; then those which only their own way knew, one after the other.
  // `why`: unless there was an error before. Neither needs memory: there may be none.
  void EndAll(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void EndBroken(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // The requests whose observers are to be told: the oldest, and the next in next_ended. The caller
  // tells them without the lock, and then says so.
  bool has_ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return ended_ != nullptr; }
  Request* TakeEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void HasTold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { --telling_; }
  bool is_telling() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return telling_ > 0; }

  void BeginDrain(Drain* drain) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void EndDrain(Drain* drain) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  bool is_draining() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return !drains_.empty(); }

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
  void CountDown(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    for (Drain* drain : drains_) drain->left_ -= sequence <= drain->last_ ? 1 : 0;
  }

  Names names_ ABSL_GUARDED_BY(kEngineLock);
  absl::Status broken_ ABSL_GUARDED_BY(kEngineLock);
  std::atomic<int> count_{0}, launched_{0};  // written under the lock
  uint64_t submissions_ ABSL_GUARDED_BY(kEngineLock) = 0;
  std::deque<Request*> deferred_
      ABSL_GUARDED_BY(kEngineLock);  // whose turn is taken, and later ones
  std::vector<Drain*> drains_ ABSL_GUARDED_BY(kEngineLock);
  Request* ended_ ABSL_GUARDED_BY(kEngineLock) = nullptr;  // the newest of those to be told
  int telling_ ABSL_GUARDED_BY(kEngineLock) = 0;           // threads that tell some
};

}  // namespace hvd
