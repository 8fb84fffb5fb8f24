// SPDX-License-Identifier: Apache-2.0
// Decides, at the first call on a GPU that all ranks of a process set have agreed on, which way the
// set's GPU tensors go in this epoch, and makes its communicator.
//
// Threads: by the annotations.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "runtime/device/gpus.h"
#include "runtime/device/nccl/nccl_process.h"
#include "runtime/device/nccl/set_vote.h"
#include "runtime/engine/epoch_world.h"
#include "runtime/engine/execution/device_work.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/gpu/communicator.h"
#include "runtime/sets/device_route.h"

namespace hvd::rt {

// Borrowed.
struct SetDecisionParts {
  EpochWorld* world = nullptr;  // the set's
  NcclProcess* process = nullptr;
  Gpus* gpus = nullptr;
  GpuOperations operations = GpuOperations::kAuto;
  std::function<int()> sets;  // that this rank is a member of
  bool says_way = false;      // rank 0 of the set, on stderr
  bool says_fallback = false;
};

class SetDecision {
 public:
  explicit SetDecision(SetDecisionParts parts);
  ~SetDecision();
  SetDecision(const SetDecision&) = delete;
  SetDecision& operator=(const SetDecision&) = delete;

  using Way = DeviceRoute::Way;
  // Any thread. It is decided once.
  Way way() const { return way_.load(std::memory_order_acquire); }
  // This rank brings nothing from now on: if it has not voted, it votes so. Any thread. Returns the
  // way that counts then; kOpen: the others are about to decide.
  Way CloseForJoin();

  // Exchanges votes with the other ranks. `first`: this rank's request; null: it has joined.
  absl::Status Decide(const Request* first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // ---- once it is kNccl, or kRefused ----
  const std::shared_ptr<GpuDevice>& device() const { return device_; }
  bool ordered() const { return ordered_; }
  const std::string& why() const { return why_; }
  // Has begun to meet the others.
  std::unique_ptr<Communicator> TakeCommunicator() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return std::move(communicator_);
  }
  const Communicator::Place& place() const { return place_; }

 private:
  absl::StatusOr<std::vector<SetVote>> Exchange(const SetVote& mine)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  SetVote Vote(const Request* first);
  void Examine(const Request& first, SetVote* vote);
  absl::Status Meet() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void Say(const SetWay& way) const;

  const SetDecisionParts parts_;
  std::atomic<Way> way_{Way::kOpen};
  Mutex mutex_;
  bool voted_ ABSL_GUARDED_BY(mutex_) = false;
  bool joins_ ABSL_GUARDED_BY(mutex_) = false;
  // Written before way_ is.
  std::shared_ptr<GpuDevice> device_;
  bool ordered_ = false;
  bool counted_ = false;  // among the process's unordered sets
  std::string why_;
  Communicator::Place place_;
  std::unique_ptr<Communicator> communicator_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd::rt
