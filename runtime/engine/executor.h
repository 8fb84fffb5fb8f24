// SPDX-License-Identifier: Apache-2.0
// The executor's work: looks for something that can be done now, does it, has what is over
// completed, and waits for the others when there is nothing. Owns what only the executor uses.
//
// Threads: whoever has the role, but for what the annotations say.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/collective/message/run.h"
#include "runtime/engine/batch_turns.h"

namespace hvd::rt {

// What an engine is given beside its epoch.
struct ExecutorTools {
  const EngineConfig& config;
  std::unique_ptr<Tuner> tuner;        // null: none
  std::unique_ptr<DeviceWork> device;  // null: none
  std::function<void()> on_device_told;
};

class Executor {
 public:
  // `intake` is borrowed.
  Executor(const EnginePlace& place, Intake* intake, ExecutorTools tools);

  // These say by their annotations who may touch them.
  BatchExecutor& batches() { return batches_; }
  const EngineConfig& config() const { return batches_.config(); }
  DeviceRuns& device() { return device_; }
  Completer& completer() { return completer_; }

  // Until `stop`, or until the epoch is broken: then nothing is pending any more. `stop` is asked
  // often and from inside waits: it must be cheap.
  void Until(absl::FunctionRef<bool()> stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Does what can be done without waiting.
  void Poll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // The ranks have lost one another: the epoch ends, and all that is pending with it.
  void EndEpoch(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Memory has run out in the middle of this rank's part: it can do it no more, and the others must
  // not wait for it. `at_work`: the name that it was about; null: none.
  void BreakThrown(const std::exception& error, const std::string* at_work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

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
  DirectWay& direct() { return intake_.ways().direct(); }
  Pairs& pairs() { return intake_.ways().pairs(); }

  void Execute(absl::FunctionRef<bool()> stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status AwaitWork(absl::FunctionRef<bool()> stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status WaitForOthers(absl::FunctionRef<bool()> ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void HurryDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // One thing that can be done now; false if there is nothing.
  bool Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepDirect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void FallBack(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepPairs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool MovePairs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepAgreement() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool StepDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool After(const absl::StatusOr<BatchTurns::Turn>& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void Break(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void EndAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void FinishParcels() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void AwaitByes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const EnginePlace place_;
  Intake& intake_;
  DeviceRuns device_;
  BatchExecutor batches_;
  Completer completer_;
  BatchTurns turns_;
};

}  // namespace hvd::rt
