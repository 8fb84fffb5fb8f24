// SPDX-License-Identifier: Apache-2.0
// The names that this rank has marked directly and that are not over: new ones, and those that the
// executor watches.
//
// Threads: by the annotations.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {

class DirectWatch {
 public:
  // For one more, so that Add throws nothing.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    if (marked_.size() == marked_.capacity()) marked_.reserve(2 * marked_.size() + 16);
  }
  // It has been marked.
  void Add(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    marked_.push_back(name);
    marked_count_.store(marked_.size(), std::memory_order_release);
  }

  // Any thread: whether somebody has marked since the executor took what was marked.
  bool has_new() const { return marked_count_.load(std::memory_order_acquire) != 0; }
  // The executor, who takes the lock for it.
  void TakeNew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock, kExecutor) {
    watched_.insert(watched_.end(), marked_.begin(), marked_.end());
    ForgetNew();
  }
  void ForgetNew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    marked_.clear();
    marked_count_.store(0, std::memory_order_relaxed);
  }
  // The one new name, if there is nothing beside it; else null.
  LocalName* only_new() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock, kExecutor) {
    return marked_.size() == 1 && watched_.empty() ? marked_.front() : nullptr;
  }

  const std::vector<LocalName*>& watched() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return watched_;
  }
  // The one at this place is watched no more.
  void Remove(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    watched_.erase(watched_.begin() + static_cast<ptrdiff_t>(index));
  }
  // The epoch is over.
  void ForgetWatched() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { watched_.clear(); }

 private:
  std::vector<LocalName*> marked_ ABSL_GUARDED_BY(kEngineLock);  // new ones
  std::atomic<size_t> marked_count_{0};                          // written under the lock
  std::vector<LocalName*> watched_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd::rt
