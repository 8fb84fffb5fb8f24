// SPDX-License-Identifier: Apache-2.0
// The way of a process set's GPU tensors by NCCL, in one epoch: the device's library, as the engine
// sees it (runtime/engine/execution/device_work.h).
//
// Threads: the executor launches; any thread may ask which way there is; hvd-nccl looks after what
// was launched.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "runtime/device/nccl/launched_runs.h"
#include "runtime/device/nccl/nccl_execution.h"
#include "runtime/device/nccl/set_decision.h"

namespace hvd::rt {

struct NcclWayParts {
  SetDecisionParts decision;
  // Functions that give and free hvd's memory for results; null: there is no memory.
  void* (*allocate_result)(int device, size_t bytes) = nullptr;
  void (*free_result)(void*) = nullptr;
};

class NcclWay final : public DeviceWork, public DeviceRoute, private NcclWatched {
 public:
  explicit NcclWay(const NcclWayParts& parts);
  ~NcclWay() override;

  absl::StatusOr<bool> Takes(const DeviceRun& run) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status Launch(const DeviceRun& run, DeviceEnd ended) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void Hurry() override { runs_.Hurry(); }
  void Abort(const absl::Status& cause) override;

  // ---- any thread ----
  Way way() const override { return decision_.way(); }
  Way CloseForJoin() override { return decision_.CloseForJoin(); }
  absl::Status CheckDevice(const Request& request) const override;

 private:
  class InUse;
  class TurnTaken;
  bool Look() override;
  absl::Status Lose(const absl::Status& why);
  absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status AwaitTurn() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  absl::Status LaunchInTurn(const DeviceRun& run, DeviceEnd ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status AwaitCallers(const DeviceRun& run) const;
  void BeginAbort();
  void AbortCommunicator();
  void End();

  const NcclWayParts parts_;
  SetDecision decision_;
  LaunchedRuns runs_;
  // From the first launch on.
  std::unique_ptr<Communicator> communicator_;
  std::optional<NcclCollectives> collectives_;
  std::optional<AbsentMemory> absent_;
  std::optional<NcclExecution> execution_;

  Mutex mutex_;
  Condition changed_;
  bool in_use_ ABSL_GUARDED_BY(mutex_) = false;  // the executor is inside NCCL
  bool aborting_ ABSL_GUARDED_BY(mutex_) = false, aborted_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point give_up_at_ ABSL_GUARDED_BY(mutex_);
  std::thread aborter_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
