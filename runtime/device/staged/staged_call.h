// SPDX-License-Identifier: Apache-2.0
// A call on tensors of a device on its way by the host: it is announced under its name, so that the
// ranks agree on it at once; its bytes are copied to host memory behind the caller's stream; the
// engine reduces them there, under names of hvd's own; what comes of it is copied back.
//
// Which way its process set goes may not be known yet when a call comes. Then nothing is copied
// before the ranks have agreed on it, and it may turn out that NCCL has it already (api/nccl/).
//
// It is *done* when the copies back are on hvd's stream, and an event behind them: the caller's
// streams can wait for that. It has *finished* when the bytes are there.
//
// Threads: Prepare and Announce the submitter's; what waits, any; the rest hvd-gpu's (kGpuThread).
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "runtime/device/caller_order.h"
#include "runtime/device/gpus.h"
#include "runtime/device/staged/staged_inbox.h"
#include "runtime/device/staged/staged_plan.h"
#include "runtime/device/staged/staging.h"
#include "runtime/sets/process_sets.h"

namespace hvd {

inline constexpr ThreadRole kGpuThread{};

// The names of this rank's calls under way. The engine knows only what is announced, and that is
// agreed before the call is done. Any thread.
class StagedNames {
 public:
  // False: it is taken.
  bool Take(int32_t set, const std::string& name) {
    const MutexLock lock(&mutex_);
    return name.empty() || names_.emplace(set, name).second;
  }
  void Give(int32_t set, const std::string& name) {
    const MutexLock lock(&mutex_);
    names_.erase({set, name});
  }

 private:
  Mutex mutex_;
  std::set<std::pair<int32_t, std::string>> names_ ABSL_GUARDED_BY(mutex_);
};

// Borrowed, but the device; they live as long as the process.
struct StagedParts {
  ProcessSets* sets = nullptr;
  Gpus* gpus = nullptr;
  Staging* staging = nullptr;
  StagedInbox* inbox = nullptr;
  StagedNames* names = nullptr;
  std::shared_ptr<GpuDevice> device;
  void (*free_result)(void*) = nullptr;  // what `gpus` has given
};

// Its fields stand by who may touch them.
class StagedCall {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  using Clock = std::chrono::steady_clock;

  // `requests`: the call's, as they were checked. They are borrowed until they are done.
  // `may_launch`: of the call's process set, NCCL may do what it can.
  struct Asked {
    absl::Span<const std::unique_ptr<Request>> requests;
    const Membership& set;
    bool may_launch = false;
  };
  StagedCall(const StagedParts& parts, const Asked& asked);
  ~StagedCall();
  StagedCall(const StagedCall&) = delete;
  StagedCall& operator=(const StagedCall&) = delete;

  // Takes memory, and notes what is on the caller's streams. An error: nothing has happened.
  absl::Status Prepare();
  // An error: it was not submitted, and is no call.
  absl::Status Announce(Engine* engine);
  StagedStep* begin() { return &begin_; }

  // ---- whoever waits ----
  // How the call went; the caller's streams go on behind it.
  absl::Status Wait();
  // Whether it is done. False: the time is over.
  bool WaitUntil(Clock::time_point end);
  bool is_done() const { return done_.load(std::memory_order_acquire); }
  // `stream`, of the same device, goes on behind it. Waits until it is done.
  absl::Status WaitOn(void* stream);

  // ---- hvd-gpu ----
  void Take(const StagedStep& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // Submits what has arrived, whether the others have announced it or not: this rank is about to
  // join, and they count on what it has announced.
  void Hurry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // A call of the same turn that came before is still under way: try again when it has ended.
  bool is_blocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread) { return is_blocked_; }
  void SubmitReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // Looks whether it can still come to an end.
  void LookAround() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // Nothing more is to be submitted.
  bool has_submitted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  // It is done, and went wrong.
  bool has_failed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread) {
    return is_done() && !failed_.ok();
  }
  // It is done, and neither the engine nor the device has anything of it any more.
  bool is_over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);

  // It is over, or is no call: gives its memory back.
  void GiveMemory();

  int32_t set() const { return set_.id; }
  const StagedPlan& plan() const { return plan_; }
  uint64_t number() const { return number_; }
  void set_number(uint64_t number) { number_ = number; }  // before it begins

 private:
  // A staged request, and how far it is.
  struct Stage {
    std::unique_ptr<StagedRequest> staged;
    StagedStep arrived;
    StagedObserver answered;
    bool has_arrived = false, submitted = false, is_answered = false;
  };
  struct Head {
    StagedObserver agreed;
    bool may_launch = false;  // NCCL may have it once it is agreed; nothing is copied before
    bool has_begun = false;   // its way by the host
    bool is_agreed = false, is_answered = false, is_launched = false;
  };

  // It goes no further. It is done when the device has let go of the caller's tensors.
  void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void EndFailed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status BeginByHost(size_t request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status Agreed(size_t request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void TakeLaunched(size_t request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status EndIfComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status TakeMemory();
  absl::Status CopyIn(Stage* stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status Submit(Stage* stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void Answered(Stage* stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status CopyBack(Stage* stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status CopyResults(Stage* stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status GiveResult(const Request& asked, const std::vector<int64_t>& shape, int position,
                          void** owned) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  absl::Status EndOnDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void Lose(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void BeDone(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  void TellFinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kGpuThread);
  static void* GiveHostMemory(void* call, const int64_t* shape, int32_t ndim, int32_t dtype,
                              int32_t index);
  void* HostMemoryFor(int32_t index, size_t bytes);

  const StagedParts parts_;
  const absl::Span<const std::unique_ptr<Request>> requests_;  // until they are done
  const Membership set_;                                       // its ranks are not kept
  const std::string name_;                                     // as given; empty: unnamed
  const bool on_host_;  // whoever waits wants the bytes to be there
  uint64_t number_ = 0;
  StagedPlan plan_;
  Staging::Piece memory_;
  bool has_memory_ = false;
  std::shared_ptr<CallerOrder> order_;
  bool observed_ = false;
  std::vector<std::unique_ptr<Request>> announced_;  // what all ranks agree on; none of a pair's
  StagedStep begin_, back_;
  std::deque<Head> heads_;  // of these; from the announcement on hvd-gpu's

  std::deque<Stage> stages_ ABSL_GUARDED_BY(kGpuThread);
  bool begun_ ABSL_GUARDED_BY(kGpuThread) = false;
  bool hurries_ ABSL_GUARDED_BY(kGpuThread) = false;
  bool engine_has_rest_ ABSL_GUARDED_BY(kGpuThread) = false;  // of those that have not begun
  bool waited_in_ ABSL_GUARDED_BY(kGpuThread) = false;  // the stream to the host, for the caller's
  bool is_blocked_ ABSL_GUARDED_BY(kGpuThread) = false;
  bool waited_back_ ABSL_GUARDED_BY(kGpuThread) = false;  // hvd's stream, for the caller's
  int on_device_ ABSL_GUARDED_BY(kGpuThread) = 0;         // steps that the driver owes
  bool lost_ ABSL_GUARDED_BY(kGpuThread) = false;         // the device tells nothing of it any more
  absl::Status failed_ ABSL_GUARDED_BY(kGpuThread);       // not OK: it goes no further
  Clock::time_point gives_up_at_ ABSL_GUARDED_BY(kGpuThread);  // then, with the device
  absl::Status refused_ ABSL_GUARDED_BY(kGpuThread);        // there was no memory for a result here
  std::vector<Request*> told_ ABSL_GUARDED_BY(kGpuThread);  // once it has finished
  Mutex results_mutex_;
  std::map<int32_t, Staging::Piece> results_ ABSL_GUARDED_BY(results_mutex_);  // by position

  std::atomic<bool> done_{false};
  GpuDevice::Event done_event_;  // written before done_
  Mutex mutex_;
  Condition changed_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd
