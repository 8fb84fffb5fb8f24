// SPDX-License-Identifier: Apache-2.0
// A rank has one join at a time.
//
// Threads: any.
#pragma once

#include <memory>

#include "base/mutex.h"
#include "runtime/sets/set_requests.h"

namespace hvd::rt {

class JoinTurns {
 public:
  // False: a turn is taken, or the join that was submitted last is not done.
  bool Take() {
    const MutexLock lock(&mutex_);
    if (IsJoining()) return false;
    return taken_ = true;
  }
  void End() {
    const MutexLock lock(&mutex_);
    taken_ = false;
  }
  // The join of the turn that is taken is about to be submitted.
  void Note(const std::shared_ptr<const SetRequests>& join) {
    const MutexLock lock(&mutex_);
    join_ = join;
  }
  bool is_joining() const {
    const MutexLock lock(&mutex_);
    return IsJoining();
  }

 private:
  bool IsJoining() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::shared_ptr<const SetRequests> join = join_.lock();
    return taken_ || (join != nullptr && !join->is_done());
  }

  mutable Mutex mutex_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<const SetRequests> join_ ABSL_GUARDED_BY(mutex_);  // gone: it is done
};

// A turn, from before a join begins until it is submitted.
class JoinTurn {
 public:
  explicit JoinTurn(JoinTurns* turns) : turns_(turns->Take() ? turns : nullptr) {}
  ~JoinTurn() {
    if (turns_ != nullptr) turns_->End();
  }
  JoinTurn(const JoinTurn&) = delete;
  JoinTurn& operator=(const JoinTurn&) = delete;

  bool taken() const { return turns_ != nullptr; }  // false: there is a join already

 private:
  JoinTurns* const turns_;
};

}  // namespace hvd::rt
