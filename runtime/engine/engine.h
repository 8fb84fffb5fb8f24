// The engine: takes requests, marks them on the board, executes the schedule log in order,
// completes requests.
//
// Threads: Submit, Wait and Poll from any thread. One thread at a time is the executor: the one
// that waits (caller-runs) or the engine thread ("hvd-engine"), which takes over when requests are
// pending and nobody waits. `mutex_` guards the table of pending requests and the role; it is never
// held during a collective.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "absl/status/status.h"
#include "runtime/engine/epoch_world.h"
#include "runtime/engine/metrics.h"
#include "runtime/engine/request.h"
#include "runtime/engine/timeline.h"

namespace hvd {

class Engine {
 public:
  explicit Engine(std::unique_ptr<EpochWorld> world);
  // Stops the thread. Requests still pending have been completed by Shutdown.
  ~Engine();

  // Borrows `request` until it is done. An error means it was not submitted: AlreadyExists for a
  // name that is pending, Aborted when the epoch is broken.
  absl::Status Submit(Request* request);
  // Submits nothing; returns when `request` is done, with its status.
  absl::Status Wait(Request* request);
  // Submit and Wait, without waking the engine thread.
  absl::Status Run(Request* request);
  // Waits until all that is pending now is done, whatever its status.
  void Drain();
  // Leaves the epoch with all other ranks. Afterwards every request is done. OK also when the epoch
  // is broken.
  void Shutdown();

  const EpochWorld& world() const { return *world_; }
  EpochWorld& world() { return *world_; }

 private:
  absl::Status SubmitLocked(Request* request);
  absl::Status WaitCounted(Request* request);  // this thread is counted in waiting_
  void NameUnnamed(Request* request);
  void ThreadBody();
  // The executor's work. REQUIRES: this thread has the role.
  template <class Stop>
  void ExecuteUntil(Stop stop);
  bool Step();
  bool StepAgreement();
  bool StepLog();
  void Execute(Request* request, const LogEntry& entry);
  void NoteExecuted(const Request& request, uint32_t number, int64_t begin_ns);
  absl::Status WaitForOthers(absl::FunctionRef<bool()> ready);
  void Complete(Request* request, uint32_t number);
  void CompleteAll(const absl::Status& status);
  void Break(const absl::Status& status);
  bool MustListen();
  void NoteActivity(const Request& request);

  const std::unique_ptr<EpochWorld> world_;
  Timeline timeline_;  // the executor's
  Metrics metrics_;    // the executor's

  std::mutex mutex_;
  std::condition_variable changed_;      // a request is done, or the role is free
  std::condition_variable thread_wake_;  // the engine thread's
  std::unordered_map<std::string, Request*> by_name_;
  std::unordered_map<uint32_t, Request*> by_number_;
  uint64_t unnamed_ = 0;
  bool executing_ = false;  // somebody has the role
  std::atomic<bool> stopping_{false};
  absl::Status broken_;          // first error; sticks
  std::atomic<int> waiting_{0};  // threads that would like the role
  std::atomic<int> pending_{0};
  std::thread thread_;
};

// Runs one agreed request on the collectives, or returns why it cannot. Sets the result of an
// allgather.
absl::Status ExecuteRequest(Request* request, const LogEntry& entry, Collectives* collectives);

}  // namespace hvd
