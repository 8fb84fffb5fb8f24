// SPDX-License-Identifier: Apache-2.0
// The runs of one process set on this rank's device, from their launch to the moment when the
// executor has heard of their end; and what is told of them.
//
// Threads: by the annotations.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/execution/device_work.h"
#include "runtime/engine/execution/unfinished.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/watch/work_notes.h"

namespace hvd::rt {

class DeviceRuns {
 public:
  // `work` null: this process uses no device. `on_told`: as Unfinished's.
  DeviceRuns(std::unique_ptr<DeviceWork> work, WorkNotes* notes, std::function<void()> on_told)
      : notes_(*notes), unfinished_(std::move(on_told)), work_(std::move(work)) {}

  DeviceWork* work() { return work_.get(); }
  // Afterwards nothing is told any more. REQUIRES: nobody executes.
  void Drop() { work_ = nullptr; }

  // As DeviceWork's. REQUIRES: there is a device.
  absl::StatusOr<bool> Takes(const DeviceRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return work_->Takes(run);
  }
  absl::Status Launch(const DeviceRun& run, const LaunchedRun& told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Takes the runs that have finished since. An error: one of them has failed, and the epoch ends.
  absl::StatusOr<std::vector<Unfinished::Ended>> TakeEnded()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Nobody else asks the device when it has finished.
  void Hurry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { work_->Hurry(); }
  // The epoch has ended: the device touches nobody's memory any more. Does so once.
  void Abort(const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool must_abort() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return work_ != nullptr && !aborted_;
  }

  // Any thread. A run counts until the executor has taken it.
  size_t count() const { return unfinished_.count(); }
  bool has_told() const { return unfinished_.has_told(); }

 private:
  void TellOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  WorkNotes& notes_;
  Unfinished unfinished_;
  bool aborted_ ABSL_GUARDED_BY(kExecutor) = false;
  std::unique_ptr<DeviceWork> work_;  // null: none; goes first, for it tells the others
};

}  // namespace hvd::rt
