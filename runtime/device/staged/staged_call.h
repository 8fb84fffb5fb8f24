// SPDX-License-Identifier: Apache-2.0
// A call on tensors of a device on its way by the host: it is announced under its name, so that the
// ranks agree on it at once; its bytes are copied to host memory behind the caller's stream; the
// engine reduces them there, under names of hvd's own; what comes of it is copied back.
//
// Which way its process set goes may not be known yet when a call comes. Then nothing is copied
// before the ranks have agreed on it, and it may turn out that NCCL has it already (../nccl/).
//
// How far it is says StagedCourse, which is pure; this does what follows.
//
// Threads: Prepare and Announce the submitter's; end(), any; the rest hvd-gpu's (kGpuThread).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "runtime/device/caller_order.h"
#include "runtime/device/staged/staged_copies.h"
#include "runtime/device/staged/staged_course.h"
#include "runtime/device/staged/staged_end.h"
#include "runtime/device/staged/staged_inbox.h"
#include "runtime/device/staged/staged_memory.h"
#include "runtime/device/staged/staged_parts.h"
#include "runtime/device/staged/staged_plan.h"

namespace hvd::rt {

class StagedCall {
 public:
  // `requests`: the call's, as they were checked. They are borrowed until they are done.
  // `may_launch`: of the call's process set, NCCL may do what it can.
  struct Asked {
    absl::Span<const std::unique_ptr<Request>> requests;
    StagedPlan plan;  // of these
    const Membership& set;
    bool may_launch = false;
  };
  StagedCall(const StagedParts& parts, Asked asked);
  StagedCall(const StagedCall&) = delete;
  StagedCall& operator=(const StagedCall&) = delete;

  // Takes memory, and notes what is on the caller's streams. An error: nothing has happened.
  absl::Status Prepare();
  // Its course begins. An error: it was not submitted, and is no call.
  absl::Status Announce(Engine* engine);

  // ---- whoever waits ----
  StagedEnd& end() { return end_; }
  // How the call went; the caller's streams go on behind it.
  absl::Status Wait() { return end_.Wait(*order_); }

  // ---- hvd-gpu ----
  void Take(const StagedStep& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // Submits what has arrived, whether the others have announced it or not: this rank is about to
  // join, and they count on what it has announced.
  void Hurry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void SubmitReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // Looks whether it can still come to an end.
  void LookAround() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  struct Standing {
    bool is_blocked = false;     // behind a call of the same turn: SubmitReady when that has ended
    bool has_submitted = false;  // nothing more is to be submitted
    bool has_failed = false;     // it is done, and went wrong
    bool is_over = false;  // it is done, and neither the engine nor the device has anything of it
  };
  Standing standing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);

  // It is over, or is no call: gives its memory back.
  void GiveMemory() { memory_.GiveBack(); }

  int32_t set() const { return set_.id; }
  uint64_t number() const { return number_; }
  void set_number(uint64_t number) { number_ = number; }  // before it begins

 private:
  // A request to the engine, and the steps that it makes.
  struct Stage {
    std::unique_ptr<StagedRequest> staged;
    StagedStep arrived;
    StagedObserver answered;
  };

  absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status CopyIn(size_t request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status Agreed(size_t request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status Submit(size_t stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void Answered(size_t stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status EndIfComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // It goes no further. It is done when the device has let go of the caller's tensors.
  void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void Lose(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void EndFailed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void BeDone(const absl::Status& status, GpuDevice::Event event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);

  const StagedParts parts_;
  const absl::Span<const std::unique_ptr<Request>> requests_;  // until they are done
  const StagedPlan plan_;
  const Membership set_;    // its ranks are not kept
  const std::string name_;  // as given; empty: unnamed
  uint64_t number_ = 0;
  bool copies_at_once_ = false;  // some of it goes by the host for certain
  const std::shared_ptr<CallerOrder> order_;
  StagedMemory memory_;
  StagedEnd end_;
  StagedStep begin_, back_;
  std::deque<StagedObserver> agreed_;                // by request; none of a send or receive
  std::vector<std::unique_ptr<Request>> announced_;  // likewise: what all ranks agree on

  StagedCourse course_ ABSL_GUARDED_BY(kGpuThread);
  StagedCopies copies_ ABSL_GUARDED_BY(kGpuThread);
  std::deque<Stage> stages_ ABSL_GUARDED_BY(kGpuThread);
  bool is_blocked_ ABSL_GUARDED_BY(kGpuThread) = false;
};

}  // namespace hvd::rt
