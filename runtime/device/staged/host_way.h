// SPDX-License-Identifier: Apache-2.0
// The way of device tensors by the host's memory: it needs no library but the driver, goes for
// every operation and type, and lets ranks share a GPU. A client of the engine, as buckets are.
//
// Threads: any; one of its own, "hvd-gpu", from the first call of an epoch to the epoch's end. It
// alone copies, and submits what has arrived.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/device/gpus.h"
#include "runtime/device/staged/staged_call.h"
#include "runtime/device/staged/staging.h"

namespace hvd::rt {

// Lives as long as the process.
class HostWay {
 public:
  // `free_result` gives back what `gpus` has given.
  HostWay(ProcessSets* sets, Gpus* gpus, Arena* arena, void (*free_result)(void*));
  HostWay(const HostWay&) = delete;
  HostWay& operator=(const HostWay&) = delete;

  // A call on tensors of one device, `requests` as they were checked; they are borrowed until they
  // are done. *call is set before its end can be told. An error: it was not submitted.
  absl::Status Submit(absl::Span<const std::unique_ptr<Request>> requests, const ProcessSet& set,
                      std::shared_ptr<StagedCall>* call);

  // The number of the last call that was submitted; 0: there was none.
  uint64_t last();
  // Waits until all calls of the set up to that one have finished, however.
  void Drain(int32_t set, uint64_t last);
  // This rank is about to join (ProcessSets::is_joining): waits until the engine has all that it
  // has announced.
  void HandOver();
  // After the last engine has gone: ends every call, and waits for the device, some seconds at
  // most.
  void EndEpoch();

 private:
  using Clock = StagedInbox::Clock;
  struct Open {
    std::shared_ptr<StagedCall> call;
    bool submitted = false;
    bool failed = false;  // and done: nobody waits for what the device still has of it
  };

  absl::StatusOr<uint64_t> Enter(const std::shared_ptr<StagedCall>& call, const Request& first);
  void Withdraw(uint64_t number);
  absl::Status Start(StagedCall* call, const Request& first, Engine* engine);
  void Body();
  void AfterStep(StagedCall* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void TryBlocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void LookAround() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  std::vector<std::shared_ptr<StagedCall>> OpenCalls() const;
  // Returns whether a call of the set is open, up to the number `last`.
  bool HasOpen(int32_t set, uint64_t last) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasUnsubmitted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveToDevice();

  const StagedParts parts_;
  StagedInbox inbox_;
  StagedNames names_;
  Staging staging_;
  std::vector<StagedCall*> blocked_ ABSL_GUARDED_BY(kGpuThread);

  mutable Mutex mutex_;
  Condition changed_;  // a call was submitted, or is over
  std::map<uint64_t, Open> open_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point give_up_at_ ABSL_GUARDED_BY(mutex_);  // while ending
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
