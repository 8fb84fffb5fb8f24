// SPDX-License-Identifier: Apache-2.0
// Executes the batches of the log, one after the other, as all ranks do. What ends only when the
// device has finished (a join, a leave, a sample of the search for better settings) rests until
// then, and the next batch comes behind it.
//
// Threads: the executor's.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/completer.h"
#include "runtime/engine/execution/batch_executor.h"

namespace hvd::rt {

// All borrowed.
struct BatchTurnsParts {
  Intake* intake = nullptr;
  DeviceRuns* device = nullptr;
  BatchExecutor* batches = nullptr;
  Completer* completer = nullptr;
};

class BatchTurns {
 public:
  BatchTurns(const EnginePlace& place, const BatchTurnsParts& parts)
      : place_(place), parts_(parts) {}

  enum class Turn {
    kNothing,
    kWorked,
    kAllLeft,  // … and with it all ranks have left: nothing more will ever be agreed on
  };
  // Executes the next batch, if there is one and nothing rests. An error ends the epoch.
  absl::StatusOr<Turn> Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // The device has finished something: ends what rested until now, if that was all.
  absl::StatusOr<Turn> EndRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Whether Step would find something to do.
  bool IsReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return parts_.intake->ways().board().IsReady() && !MustRest();
  }
  // Whether something waits for the device.
  bool rests() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { return rest_.any(); }
  // The epoch has ended: what rests of requests is pending still.
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { rest_ = {}; }

 private:
  struct Rest {
    std::vector<Request*> requests;  // joins and leaves that are over
    bool tunes = false;              // a sample of the search is over
    bool is_end = false;             // all ranks have left

    bool any() const { return !requests.empty() || tunes || is_end; }
  };
  bool MustRest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return rest_.any() && parts_.device->count() > 0;
  }
  bool FindRequests(AgreedBatch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::StatusOr<Turn> Execute(AgreedBatch batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void Complete(ExecutedBatch executed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status Tune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const EnginePlace place_;
  const BatchTurnsParts parts_;
  Rest rest_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd::rt
