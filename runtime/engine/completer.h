// SPDX-License-Identifier: Apache-2.0
// The one owner of a request's end: by itself, launched on a device, or with the epoch. Wakes who
// waits for it, tells its observer, and marks what waited for its turn.
//
// Threads: the executor's, but for what the annotations say.
#pragma once

#include <exception>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/execution/device_runs.h"
#include "runtime/engine/intake.h"

namespace hvd::rt {

class Completer {
 public:
  // All borrowed.
  Completer(const EnginePlace& place, Intake* intake, DeviceRuns* device)
      : place_(place), intake_(*intake), device_(*device) {}

  enum class Over {
    kFinished,
    kLastWork,  // … and there is nothing left to do for the one who has the role for one of these
    kLaunched,  // done; a device finishes them later (NoteFinished)
  };
  // Their status is set. After this the submitters may free them.
  void Complete(absl::Span<Request* const> requests, Over how = Over::kFinished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // The same of one that ends under the lock that it was submitted under, beside nothing else.
  void End(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // A device has finished these: whoever drains may go on.
  void NoteFinished(absl::Span<const Unfinished::Ended> runs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // All that are pending end with `status`, and nobody drains any more.
  void CompleteAll(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // The ranks have lost one another: the epoch ends, and all that is pending with it.
  void EndEpoch(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // The epoch has ended, for `status`; the same.
  void Break(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Memory has run out in the middle of this rank's part of a name (empty: none), and with it the
  // epoch.
  void BreakThrown(const std::exception& error, std::string_view at_work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // Whether observers are being told that did not know.
  bool is_telling() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return telling_ > 0; }

 private:
  void EndLaunched(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void SetDone(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void EndBroken(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void MarkDeferred() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  Request* TakeEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void TellEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void AbortDevice(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const EnginePlace place_;
  Intake& intake_;
  DeviceRuns& device_;
  // The newest of those whose observers are to be told; the one before it is its next_ended.
  Request* ended_ ABSL_GUARDED_BY(kEngineLock) = nullptr;
  int telling_ ABSL_GUARDED_BY(kEngineLock) = 0;  // threads that tell some
};

}  // namespace hvd::rt
