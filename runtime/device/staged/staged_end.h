// SPDX-License-Identifier: Apache-2.0
// How a call on its way by the host ends, for those who wait for it and those who are told.
//
// It is *done* when the copies back are on hvd's stream, and an event behind them: the caller's
// streams can wait for that. It has *finished* when the bytes are there.
//
// Threads: hvd-gpu ends it; any thread waits.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "runtime/device/caller_order.h"
#include "runtime/engine/request/request.h"
#include "runtime/gpu/gpu_device.h"

namespace hvd::rt {

class StagedEnd {
 public:
  using Clock = std::chrono::steady_clock;

  // `requests`: the call's, with their observers. They are borrowed until they are done.
  StagedEnd(std::shared_ptr<GpuDevice> device, absl::Span<const std::unique_ptr<Request>> requests);
  ~StagedEnd();
  StagedEnd(const StagedEnd&) = delete;
  StagedEnd& operator=(const StagedEnd&) = delete;

  bool is_done() const { return done_.load(std::memory_order_acquire); }
  // Whether it is done. False: the time is over.
  bool WaitUntil(Clock::time_point end);
  // How the call went; the streams of `order` go on behind it.
  absl::Status Wait(const CallerOrder& order);
  // `stream`, of the same device, goes on behind it. Waits until it is done.
  absl::Status WaitOn(void* stream);

  // ---- hvd-gpu ----
  // Once. `event`: behind all copies back; none of a call that has failed. From here on the caller
  // may free the requests, but for those whose end is to be told.
  void BeDone(const absl::Status& status, GpuDevice::Event event);
  // Once counts.
  void TellFinished();

 private:
  const std::shared_ptr<GpuDevice> device_;
  const absl::Span<const std::unique_ptr<Request>> requests_;  // until they are done
  const bool on_host_;                                         // a wait is for the bytes
  std::vector<Request*> told_;                                 // hvd-gpu's: once it has finished

  std::atomic<bool> done_{false};
  GpuDevice::Event event_;  // written before done_
  Mutex mutex_;
  Condition changed_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
