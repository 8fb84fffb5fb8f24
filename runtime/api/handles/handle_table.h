// SPDX-License-Identifier: Apache-2.0
// Handles of asynchronous calls: number → what was submitted. Thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "hvd/hvd.h"
#include "runtime/api/handles/pending.h"

namespace hvd::rt {

class HandleTable {
 public:
  hvd_handle_t Add(std::shared_ptr<Pending> pending);
  // Null for a number that is no handle (any more).
  std::shared_ptr<Pending> Find(hvd_handle_t handle) const;
  // False when it is there no more: another thread has removed it.
  bool Remove(hvd_handle_t handle);
  // Removes it, and keeps what it stands for until that is done.
  bool Release(hvd_handle_t handle);
  // Drops those that were released and are done, as Add and Release do.
  void DropDone() {
    const MutexLock lock(&mutex_);
    DropDoneLocked();
  }
  // It is a handle, or was one.
  bool WasGiven(hvd_handle_t handle) const;

 private:
  void DropDoneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<hvd_handle_t, std::shared_ptr<Pending>> pending_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Pending>> released_ ABSL_GUARDED_BY(mutex_);  // in their order
  hvd_handle_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hvd::rt
