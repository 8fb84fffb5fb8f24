// SPDX-License-Identifier: Apache-2.0
// The engine of one process set: takes requests, marks them, executes what the ranks have agreed
// on, completes requests.
//
// A request goes one of two ways. A small tensor whose set lies on one host goes directly: marks
// and tensors side by side in shared memory (direct.h). Everything else goes through the board and
// its log of batches, which every rank executes in the same order, fused (fusion.h). Sends and
// receives concern two ranks and go a way of their own (pairs.h).
//
// A request is *done* when its waiters may go on, and has *finished* when the bytes are there. On
// the CPU that is one moment. A request that a device executes (execution/device_work.h) is done
// when it is on the device's stream; it finishes later, which Earlier, a join and Shutdown wait
// for.
//
// This is the facade. Behind it: how requests come in (intake.h), how they go (ways.h), who
// executes (executor_role.h) and what that is (executor.h), how they end (completer.h), how a rank
// joins and leaves (departure.h).
//
// Threads: Submit, Wait, Run and Poll from any thread.
#pragma once

#include <chrono>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/engine_thread.h"

namespace hvd::rt {

// The optional helpers of an engine.
struct EngineHelpers {
  std::unique_ptr<Tuner> tuner = nullptr;        // searches for better settings meanwhile
  std::unique_ptr<DeviceWork> device = nullptr;  // executes what does not lie in the host's memory
};

class Engine {
 public:
  using Clock = std::chrono::steady_clock;

  Engine(std::unique_ptr<EpochWorld> world, const EngineConfig& config, EngineHelpers helpers = {});
  // Stops the thread. Requests still pending have been completed by Shutdown.
  ~Engine();

  // Borrows `request` until it is done. An error means it was not submitted: AlreadyExists for a
  // name that is pending, OutOfMemory, Aborted when the epoch is broken.
  absl::Status Submit(Request* request);
  // The requests of one call, a type each. The ranks agree on the first, for all: they run together
  // or fail together. The others get names of its (NamePart). `requests` stays as it is until all
  // are done.
  absl::Status SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests);
  // Submits nothing; returns when `request` is done, with its status.
  absl::Status Wait(Request* request);
  // Waits for it, but not beyond `end`, unless a collective is under way then. False: time is over.
  bool WaitUntil(Request* request, Clock::time_point end);
  // Submit and Wait, without arming the engine thread.
  absl::Status Run(Request* request);
  // The same with WaitUntil. Not done: it is still borrowed, and what is returned is OK.
  absl::Status RunUntil(Request* request, Clock::time_point end, bool* done);
  // Whether it is done; helps it along if nobody else does. Never blocks.
  bool Poll(Request* request);
  // All that has been submitted until now, to be waited for later.
  class Earlier {
   public:
    explicit Earlier(Engine* engine);
    ~Earlier();
    Earlier(const Earlier&) = delete;
    Earlier& operator=(const Earlier&) = delete;
    // Returns when all of it has finished, whatever its status.
    void Await();

   private:
    Engine& engine_;
    Drain drain_;
    bool begun_ = false;  // there was something
  };
  // Leaves the epoch with all other ranks. Afterwards every request has finished, or the device
  // touches its memory no more. OK also when the epoch is broken.
  void Shutdown();
  // The same in two parts, for a rank that leaves several sets: it says so in all of them before it
  // waits for anybody in one. Any threads, each once or more: the first says it, and all of them
  // wait. From BeginLeave on nothing more is taken.
  void BeginLeave();
  void FinishLeave();

  const EpochWorld& world() const { return *world_; }
  EpochWorld& world() { return *world_; }
  const EngineConfig& config() const { return executor_.config(); }
  DeviceWork* device() { return executor_.device().work(); }  // null: none

 private:
  EnginePlace BeginWork();
  // Unlocks.
  absl::Status WaitLocked(Request* request, ExecutorRole::Lock* lock)
      ABSL_UNLOCK_FUNCTION(kEngineLock);
  bool WaitUntilLocked(Request* request, Clock::time_point end, ExecutorRole::Lock* lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Returns when `done`, which becomes true under the lock only. REQUIRES: this thread is counted
  // as a waiter.
  void ExecuteOrWait(absl::FunctionRef<bool()> done, ExecutorRole::Lock* lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  bool BeginRun(Request* request, ExecutorRole::Lock* lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  DirectWay::Outcome LookAtOnce(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // This thread waits no more: unlocks, and offers the role on.
  void HandOver(ExecutorRole::Lock* lock)
      ABSL_UNLOCK_FUNCTION(kEngineLock) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // To one of the `others` who wait, or, when the role is free, to the engine thread.
  void OfferRole(int others, bool free);
  // Waits for the role to be free. Whoever has it gives it up for one that waits, or when its work
  // ends; all work ends.
  void AwaitRole(ExecutorRole::Lock* lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void AwaitDrain(const Drain& drain);
  void AnswerHvdd();
  // Any thread: the end of a launched run has been told.
  void WakeForDevice();

  const std::unique_ptr<EpochWorld> world_;
  ExecutorRole role_;
  WorkNotes notes_;
  const EnginePlace place_;
  Intake intake_;
  Executor executor_;
  Mutex finish_mutex_;  // held during FinishLeave; not under the engine's lock
  bool has_left_ ABSL_GUARDED_BY(finish_mutex_) = false;
  EngineThread thread_;  // the last: it uses all others
};

}  // namespace hvd::rt
