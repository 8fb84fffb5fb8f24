// SPDX-License-Identifier: Apache-2.0
// The runs that this rank has launched on its device in one process set and that have not finished
// there. A run's requests are done, and may be gone: the run lives here until its end is told.
//
// Threads: by the annotations. The executor adds runs and takes those that have ended; any thread
// tells an end. A run leaves this class only by the executor's hand, so what it sees stands still.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/watch/launched_run.h"

namespace hvd::rt {

class Unfinished {
 public:
  // The number of a launch, from one on. Never used again.
  using Number = uint64_t;

  // `on_told`: called by whoever tells an end, so that the executor looks. Without a lock held.
  explicit Unfinished(std::function<void()> on_told) : on_told_(std::move(on_told)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  // Before the launch: its end may be told at once. Makes room, so that Tell needs no memory.
  Number Add(LaunchedRun run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // It has not been launched after all.
  void Remove(Number number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Any thread: it has finished, or failed. A run whose end was told before, or that is not known
  // here (any more), changes nothing.
  void Tell(Number number, const absl::Status& status);

  struct Ended {
    LaunchedRun run;
    absl::Status status;
    int64_t end_ns = 0;  // when it was told
  };
  // Takes the runs whose end has been told since, in the order in which it was told.
  std::vector<Ended> TakeEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  struct Oldest {
    Number number = 0;
    const LaunchedRun* run = nullptr;  // null: everything has finished
  };
  Oldest oldest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // The epoch has ended, and the device has been aborted.
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // Any thread. A run counts until the executor has taken it.
  size_t count() const { return count_.load(std::memory_order_acquire); }
  bool has_told() const { return has_told_.load(std::memory_order_acquire); }

 private:
  struct Told {
    Number number = 0;
    absl::Status status;
    int64_t end_ns = 0;
  };

  const std::function<void()> on_told_;
  std::map<Number, LaunchedRun> runs_ ABSL_GUARDED_BY(kExecutor);
  Number last_ ABSL_GUARDED_BY(kExecutor) = 0;
  std::atomic<size_t> count_{0};  // of runs_; written by the executor
  Mutex told_mutex_;
  std::vector<Told> told_ ABSL_GUARDED_BY(told_mutex_);
  std::atomic<bool> has_told_{false};  // written under told_mutex_
};

}  // namespace hvd::rt
