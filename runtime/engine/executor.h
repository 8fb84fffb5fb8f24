// SPDX-License-Identifier: Apache-2.0
// The executor's work: looks for something that can be done now, does it, has what is over
// completed, and waits for the others when there is nothing.
//
// Threads: whoever has the role, but for what the annotations say.
#pragma once

#include <chrono>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collective/message/run.h"
#include "runtime/engine/completer.h"
#include "runtime/engine/execution/batch_executor.h"
#include "runtime/engine/intake.h"

namespace hvd {

// All borrowed.
struct ExecutorParts {
  EpochWorld* world = nullptr;
  ExecutorRole* role = nullptr;
  PendingRequests* pending = nullptr;
  DirectWay* direct = nullptr;
  BoardWay* board = nullptr;
  Pairs* pairs = nullptr;
  Departure* departure = nullptr;
  Intake* intake = nullptr;
  BatchExecutor* batches = nullptr;
  DeviceRuns* device = nullptr;
  Completer* completer = nullptr;
  WorkNotes* notes = nullptr;
};

class Executor {
 public:
  explicit Executor(const ExecutorParts& parts) : parts_(parts) {}

  // Until `stop`, or until the epoch is broken: then nothing is pending any more. `stop` is asked
  // often and from inside waits: it must be cheap.
  void Until(absl::FunctionRef<bool()> stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Does what can be done without waiting.
  void Poll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Memory has run out in the middle of this rank's part: it can do it no more, and the others must
  // not wait for it.
  void BreakThrown(const std::exception& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // The ranks have lost one another: the epoch ends, and all that is pending with it.
  void EndEpoch(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // The last decision must reach the other hosts before this rank's transport goes.
  void SayBye() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // This rank is the last one's, or all have left: what is pending is over, in order or because the
  // epoch is broken.
  void EndEverything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

 private:
  // Sends, receives and the agreement between hosts, while the executor waits.
  class Errands : public BackgroundWork {
   public:
    explicit Errands(Executor* executor) : executor_(*executor) {}
    bool Step() override;

   private:
    Executor& executor_;
  };
  void Execute(absl::FunctionRef<bool()> stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status AwaitWork(absl::FunctionRef<bool()> stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status WaitForOthers(absl::FunctionRef<bool()> ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // One thing that can be done now; false if there is nothing.
  bool Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepDirect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepPairs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepAgreement() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepBoard() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool FindRequests(AgreedBatch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void ExecuteBatch(AgreedBatch batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // The rest of a batch, to be done when all that this rank has launched until now has finished.
  // The next batch comes after it.
  struct Rest {
    std::vector<Request*> requests;  // a join, or a leave: executed, but not done yet
    bool tunes = false;              // a sample of the search is over
    bool is_end = false;             // all ranks have left

    bool any() const { return !requests.empty() || tunes || is_end; }
  };
  // Whether the next batch would have to wait.
  bool MustRest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return rest_.any() && parts_.device->count() > 0;
  }
  void DoRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status Tune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool MovePairs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void FinishParcels() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void FallBack(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void EndAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void AwaitByes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void Break(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  void HurryDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void AbortDevice(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const ExecutorParts parts_;
  Rest rest_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd
