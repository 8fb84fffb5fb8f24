// The engine of one process set: takes requests, marks them, executes what the ranks have agreed
// on, completes requests.
//
// A request goes one of two ways. A small tensor whose set lies on one host goes directly: marks
// and tensors side by side in shared memory (direct.h). Everything else goes through the board and
// its log of batches, which every rank executes in the same order, fused (fusion.h). Sends and
// receives concern two ranks and go a way of their own (pairs.h).
//
// Threads: Submit, Wait, Run and Poll from any thread. One thread at a time is the executor: the
// one that waits (caller-runs) or the engine thread ("hvd-engine"), which looks a short while after
// a submission whether requests are pending and nobody waits. `mutex_` guards the names and the
// role; it is never held during a collective, but for a small one whose peers are there already.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/batch_timer.h"
#include "runtime/engine/epoch_world.h"
#include "runtime/engine/names.h"
#include "runtime/engine/pairs.h"
#include "runtime/engine/request/request.h"
#include "runtime/engine/tuning/config.h"
#include "runtime/engine/tuning/tuner.h"
#include "runtime/engine/watch/metrics.h"
#include "runtime/engine/watch/stall.h"
#include "runtime/engine/watch/timeline.h"

namespace hvd {

// There was no memory for a request: it was not submitted, and everything is as before. Internal;
// copies need no memory.
const absl::Status& OutOfMemory();
// The symptom of that: short enough to be a string without memory.
inline constexpr char kNoMemory[] = "out of memory";
// What ends, and what is asked for, after this rank's leave.
inline constexpr char kHasLeft[] = "this rank has called shutdown";

struct ShownInput;

class Engine {
 public:
  using Clock = std::chrono::steady_clock;

  // `tuner`: searches for better settings meanwhile; null: no.
  Engine(std::unique_ptr<EpochWorld> world, const EngineConfig& config,
         std::unique_ptr<Tuner> tuner = nullptr);
  // Stops the thread. Requests still pending have been completed by Shutdown.
  ~Engine();

  // Borrows `request` until it is done. An error means it was not submitted: AlreadyExists for a
  // name that is pending, OutOfMemory, Aborted when the epoch is broken.
  absl::Status Submit(Request* request);
  // The requests of one call, all or none; those after the first get names of its (NamePart). Where
  // one of these cannot be submitted, though others know of the first, the epoch ends and says so:
  // then that request is done, with why.
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
  // Waits until all that has been submitted before is done, whatever its status.
  void Drain();
  // Leaves the epoch with all other ranks. Afterwards every request is done. OK also when the epoch
  // is broken.
  void Shutdown();
  // The same in two parts, for a rank that leaves several sets: it says so in all of them before it
  // waits for anybody in one. Any threads, each once or more: the first says it, and all of them
  // wait. From BeginLeave on nothing more is taken.
  void BeginLeave();
  void FinishLeave();

  const EpochWorld& world() const { return *world_; }
  EpochWorld& world() { return *world_; }
  const EngineConfig& config() const { return config_; }

 private:
  class Role;  // engine_role.h

  // engine.cc: requests and the role.
  absl::Status SubmitLocked(Request* request, bool caller_waits);
  absl::Status SubmitGroupLocked(absl::Span<const std::unique_ptr<Request>> requests);
  absl::Status SubmitPartLocked(const Request& first, Request* request);
  absl::Status EnterLocked(Request* request, bool caller_waits);
  absl::Status WithdrawLocked(Request* request, const std::exception& error);
  void MakeRoomLocked();
  bool BeginRunLocked(Request* request, std::unique_lock<std::mutex>* lock);
  // REQUIRES: this thread is counted in waiting_. Unlocks.
  absl::Status WaitLocked(Request* request, std::unique_lock<std::mutex>* lock);
  bool WaitUntilLocked(Request* request, Clock::time_point end, std::unique_lock<std::mutex>* lock);
  // Returns when `done`, which becomes true under mutex_ only. REQUIRES: as above.
  void ExecuteOrWait(absl::FunctionRef<bool()> done, std::unique_lock<std::mutex>* lock);
  void HandOver(std::unique_lock<std::mutex>* lock);
  // To one of the `others` who wait, or, when the role is free, to the engine thread.
  void OfferRole(int others, bool free);
  // REQUIRES: mutex_.
  void AddPending(int more) {
    pending_.store(pending_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  void ArmTimer();
  // engine_thread.cc
  struct Coming {
    uint64_t seen = 0;  // of submissions_
    int windows = 0;    // that have been waited for
  };
  bool MoreComesLocked(Coming* coming);
  void ThreadBody();
  bool MustListen() const;

  // engine_marks.cc: the two ways in.
  absl::Status PrepareLocked(LocalName* name, const Request& request);
  absl::Status MarkLocked(LocalName* name);
  bool MarkDirectly(LocalName* name);
  void MarkInPlace(LocalName* name);
  absl::Status MarkOnBoard(LocalName* name);
  void SubmitDeferredLocked();
  // engine_pairs.cc: sends and receives.
  absl::Status EnterPairLocked(Request* request);
  bool MovePairs();
  bool StepPairs();
  void FinishParcels();
  // engine_numbers.cc: who goes directly.
  void FindNumberLocked(LocalName* name);
  bool WantsNumber(const LocalName& name) const;
  void TakeNumberLocked(const LogEntry& entry, LocalName* name);
  void GiveUpIdleLocked(uint64_t distance);
  // engine_join.cc
  absl::Status RefuseJoinedLocked(const Request& request) const;
  absl::Status JoinLocked(LocalName* name);
  std::vector<std::string_view> OwedLocked();
  void CompleteAwayLocked(const Request& request);

  // engine_steps.cc: the executor's work. REQUIRES: this thread has the role.
  // `stop` is asked often and from inside waits: it must be cheap.
  void ExecuteUntil(absl::FunctionRef<bool()> stop);
  void Execute(absl::FunctionRef<bool()> stop);
  void PollDirect();
  void BreakThrown(const std::exception& error);
  bool Step();
  bool StepAgreement();
  bool StepDirect();
  void WatchMarkedLocked();
  bool MayEndAtOnceLocked(const Request& request) const;
  bool EndAtOnceLocked(Request* request);
  bool StepLog();
  bool DirectIsReady() const;
  Direct::Seen LookAt(const LocalName& name) const;
  // engine_in_place.cc: requests whose marks say where the tensors lie.
  bool MayStage(const Request& request) const;
  void WorkInPlace(LocalName* name);
  void FinishInPlace(LocalName* name);
  // engine_buffers.cc: where ranks write to the others' tensors too.
  struct InPlaceBuffers {
    const void* inputs[kMaxLocalRanks];
    void* outputs[kMaxLocalRanks];
  };
  void MarkBuffers(LocalName* name);
  void StageOthersSlices(const Request& request);
  void CollectOthersSlices(const Request& request);
  bool FindBuffers(const LocalName& name, InPlaceBuffers* buffers);
  absl::Status SumInPlace(const LocalName& name);
  absl::Status BroadcastInPlace(const LocalName& name);
  // engine_inputs.cc: where they only read them.
  void MarkInput(LocalName* name);
  void StageForOthers(const Request& request);
  ShownInput FindInput(const LocalName& name, int peer) const;
  absl::Status FetchInPlace(const LocalName& name);
  void ExecuteDirectly(LocalName* name);
  void FinishDirect(LocalName* name);
  void FallBack(LocalName* name);
  bool FindRequests(const std::vector<LogEntry>& batch, std::vector<Request*>* requests);
  bool ExecuteBatch(const std::vector<LogEntry>& batch, const std::vector<Request*>& requests);
  void PrepareAbsent(const std::vector<LogEntry>& batch, const std::vector<Request*>& requests,
                     const std::vector<size_t>& run);
  absl::Status ExecuteFused(const std::vector<LogEntry>& batch,
                            const std::vector<Request*>& requests, const std::vector<size_t>& run);
  void Tune(const std::vector<LogEntry>& batch);
  bool BreakIfBroken(const absl::Status& status);
  // engine_notes.cc: what is told about the work.
  struct RunTimes {
    int64_t batch_ns;  // when its batch came
    int64_t begin_ns;
  };
  // Before it is marked: others may see that this rank takes part before it goes on here.
  void NoteActivity(const Request& request, bool caller_waits);
  void UnnoteActivity();
  // A rank that waits in the program's call is in it, one that only has something under way is not.
  void NoteCallers(int callers);
  void NoteWork(const LogEntry& entry, const Request* first, size_t tensors);
  void NoteDirect(const Request& request, int64_t begin_ns);
  void NoteRun(const RunTimes& times, absl::Span<Request* const> requests);
  absl::Status WaitForOthers(absl::FunctionRef<bool()> ready);
  void AnswerHvdd();
  // What somebody waits for in Drain.
  struct Draining {
    uint64_t last;          // of the submissions that count
    std::atomic<int> left;  // of them
  };
  void CompleteLocked(Request* request);
  // The end of every request that was submitted. REQUIRES: mutex_; then TellEnded.
  void EndLocked(Request* request);
  void TellEnded();
  void Complete(absl::Span<Request* const> requests, bool last_work = false);
  void CompleteAll(const absl::Status& status);
  void Break(const absl::Status& status);

  void EndAll();

  // engine_leave.cc
  // What the first BeginLeave has submitted.
  struct Leave {
    Request request;
    absl::Status submitted;
    bool begun = false;
  };
  absl::Status BeginLeaveLocked();
  void NoteLeftLocked();
  void EndUnleft(const absl::Status& why);
  void AwaitRole(std::unique_lock<std::mutex>* lock);
  void SayBye();

  const std::unique_ptr<EpochWorld> world_;
  EngineConfig config_;           // the executor's: the tuner changes it
  std::unique_ptr<Tuner> tuner_;  // null: none, or done
  Timeline timeline_;             // the executor's
  Metrics metrics_;               // the executor's
  Pairs pairs_;                   // submitters', under mutex_; the executor's
  StallAnswer stall_;             // the executor's
  bool waited_ = false;           // the executor's: for others, since it last had work
  // The executor's: what it executes out of a batch; null: nothing, or only others have it.
  const std::string* at_work_ = nullptr;
  // The executor's: what the host's page says that it executes.
  struct NotedWork {
    uint64_t number = 0;
    const LocalName* first = nullptr;
    RequestKind kind = RequestKind::kLeave;
    size_t tensors = 0;
  } noted_work_;

  std::mutex mutex_;
  std::condition_variable changed_;  // a request is done, or the role is free
  BatchTimer timer_;                 // the engine thread's
  // Of config_, for those who submit.
  std::atomic<int64_t> batch_wait_us_, fusion_threshold_;
  Names names_;
  std::vector<LocalName*> by_number_;  // what is pending under each number; others are beyond it
  std::vector<LocalName*> numbered_;   // names with a direct number, but turns
  uint64_t oldest_use_ = 0;            // none of those was used last before this one
  uint64_t submissions_ = 0;
  const LocalName* last_noted_ = nullptr;  // what the host's page says was asked for last
  std::deque<Request*> deferred_;          // unnamed ones whose turn is taken, and later ones
  std::vector<Draining*> draining_;        // those of Drain's callers
  Request* ended_ = nullptr;               // the newest of those whose observers are to be told
  int telling_ = 0;                        // threads that tell some
  bool executing_ = false;                 // somebody has the role (Role)
  Request* runner_ = nullptr;              // of Run, whose thread has it
  std::atomic<bool> stopping_{false};
  absl::Status broken_;          // first error; sticks
  std::atomic<int> waiting_{0};  // threads that would like the role
  std::atomic<int> pending_{0};  // written under mutex_
  // Names marked directly: new ones, under mutex_; then the executor's.
  std::vector<LocalName*> marked_;
  std::atomic<size_t> marked_count_{0};
  std::vector<LocalName*> watched_;
  uint64_t rounds_ = 0;         // joins completed
  Request* joining_ = nullptr;  // this rank's join
  bool leaving_ = false;        // its leave is marked
  Leave leave_;
  std::mutex finish_mutex_;                   // held during FinishLeave; not under mutex_
  bool has_left_ = false;                     // guarded by finish_mutex_
  std::vector<std::byte> neutral_, dropped_;  // what a joined rank brings, and where results go
  std::thread thread_;
};

// Runs one agreed request on the collectives, or returns why it cannot. Sets its results.
absl::Status ExecuteRequest(Request* request, const LogEntry& entry, Collectives* collectives);
// The same for a rank that has joined and brings nothing.
absl::Status ExecuteAbsent(const LogEntry& entry, Collectives* collectives);

}  // namespace hvd
