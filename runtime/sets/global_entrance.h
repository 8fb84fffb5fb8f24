// SPDX-License-Identifier: Apache-2.0
// The way of most calls to their set, the global one: they count themselves inside, and take no
// lock.
//
// A thread that is inside has counted itself first and looks at the set then; Close takes the set
// away first and looks at the count then. One of the two therefore sees the other, and the last one
// out drops what was stopped.
//
// Threads: any; it is opened and closed by turns.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "runtime/sets/process_set.h"

namespace hvd::rt {

class GlobalEntrance {
 public:
  // `global` stays until Close is given it.
  void Open(const ProcessSet* global) { global_.store(global); }
  // Nobody enters any more.
  void Close() { global_.store(nullptr); }
  // Drops the sets when nobody is inside any more. After Close.
  void Drop(std::vector<SetPointer> stopped);

  // The global set, which stays until as many Leave have followed; null: there is none, and nothing
  // to leave.
  const ProcessSet* Enter() const {
    inside_.fetch_add(1);
    const ProcessSet* global = global_.load();
    if (global == nullptr) Leave();
    return global;
  }
  void Leave() const {
    if (inside_.fetch_sub(1) == 1 && any_stopped_.load()) DropStopped();
  }

 private:
  void DropStopped() const;

  std::atomic<const ProcessSet*> global_{nullptr};
  mutable std::atomic<int> inside_{0};
  mutable std::atomic<bool> any_stopped_{false};
  mutable Mutex mutex_;
  mutable std::vector<SetPointer> stopped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
