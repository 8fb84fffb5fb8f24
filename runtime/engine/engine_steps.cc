// The executor's work: one thread at a time.
#include <algorithm>
#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/engine/execution/fusion.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// Errors about the request itself leave the epoch whole; anything else means that ranks have lost
// one another.
bool BreaksEpoch(const absl::Status& status) {
  return !status.ok() && !absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status) &&
         !absl::IsResourceExhausted(status);
}

}  // namespace

void Engine::ExecuteUntil(absl::FunctionRef<bool()> stop) {
  try {
    Execute(stop);
  } catch (const std::exception& error) {
    BreakThrown(error);
  }
}

// What can be done without waiting.
void Engine::PollDirect() {
  try {
    while (StepDirect() || StepPairs()) {
    }
  } catch (const std::exception& error) {
    BreakThrown(error);
  }
}

// What is thrown is memory running out. This rank cannot do its part any more: the others must not
// wait for it.
void Engine::BreakThrown(const std::exception& error) {
  world_->board().AbortThrown(error, at_work_ != nullptr ? *at_work_ : std::string_view());
  at_work_ = nullptr;
  // Another's abort may be half written: its words are the cause.
  Break(world_->waiter().EndEpoch(kNoMemory));
}

void Engine::Execute(absl::FunctionRef<bool()> stop) {
  RankActivity& activity = world_->activity();
  while (!stop()) {
    if (Step()) continue;
    bool broken = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      broken = !broken_.ok();
    }
    if (stopping_.load()) return;
    if (broken) return Break(absl::OkStatus());
    activity.state.store(RankState::kWaiting, std::memory_order_relaxed);
    const absl::Status waited = WaitForOthers([&] {
      return DirectIsReady() || stop() || world_->board().HasNext() || world_->board().HasOpen() ||
             (pairs_.active() && MovePairs()) || (world_->leader() != nullptr && StepAgreement()) ||
             stopping_.load(std::memory_order_relaxed);
    });
    activity.state.store(RankState::kIdle, std::memory_order_relaxed);
    if (!waited.ok()) return Break(waited);
  }
}

// One thing that can be done now; false if there is nothing.
bool Engine::Step() {
  if (StepDirect()) return true;
  if (pairs_.active() && StepPairs()) return true;
  if (world_->leader() != nullptr && StepAgreement()) return true;
  return StepLog();
}

bool Engine::StepAgreement() {
  const absl::StatusOr<bool> moved = world_->leader()->Step();
  if (!moved.ok()) {
    (void)world_->waiter()
        .EndEpoch(std::string(moved.status().message()))
        .ok();  // the epoch is aborted now: the caller's wait says so
    return false;
  }
  if (*moved) world_->waiter().Ring();
  return *moved;
}

bool Engine::StepLog() {
  Board& board = world_->board();
  if (!board.HasNext()) {
    if (!board.HasOpen()) return false;
    board.Close();
    world_->waiter().Ring();
    if (!board.HasNext()) return false;
  }
  const std::vector<LogEntry> batch = board.NextBatch();
  if (batch.empty()) return false;  // the epoch has ended: the wait says so
  std::vector<Request*> requests;
  requests.reserve(batch.size());
  // So it is, too, when this rank's mark was refused because the epoch ends.
  if (!FindRequests(batch, &requests)) {
    Break(
        world_->waiter().EndEpoch("the schedule names a tensor that this rank has not submitted"));
    return true;
  }
  return ExecuteBatch(batch, requests);
}

// By the batch's entries; null for one that a joined rank has not submitted. False when something
// is missing.
bool Engine::FindRequests(const std::vector<LogEntry>& batch, std::vector<Request*>* requests) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const LogEntry& entry : batch) {
    LocalName* name = nullptr;
    if (entry.number < by_number_.size()) std::swap(name, by_number_[entry.number]);
    requests->push_back(name != nullptr ? name->pending : nullptr);
    if (name == nullptr && joining_ == nullptr) return false;
    if (name != nullptr) TakeNumberLocked(entry, name);
  }
  return true;
}

bool Engine::ExecuteBatch(const std::vector<LogEntry>& batch,
                          const std::vector<Request*>& requests) {
  std::vector<Request*> finished;
  const int64_t batch_ns = Timeline::Now();
  const FusionRules rules = {static_cast<size_t>(config_.fusion_threshold),
                             config_.disable_group_fusion, world_->transport() != nullptr};
  for (const std::vector<size_t>& run : PlanFusion(batch, rules)) {
    absl::Status status;
    const RunTimes times = {batch_ns, finished.empty() ? batch_ns : Timeline::Now()};
    const size_t before = finished.size();
    at_work_ = requests[run[0]] != nullptr ? requests[run[0]]->local->name : nullptr;
    NoteWork(batch[run[0]], requests[run[0]], run.size());
    if (ReducesPlainly(batch[run[0]])) {
      status = ExecuteFused(batch, requests, run);
    } else if (requests[run[0]] != nullptr) {
      status = ExecuteRequest(requests[run[0]], batch[run[0]], &world_->collectives());
    } else {
      status = ExecuteAbsent(batch[run[0]], &world_->collectives());
    }
    at_work_ = nullptr;
    if (BreakIfBroken(status)) return true;  // what it was in stays to be read
    EndWork(&world_->activity());
    for (const size_t i : run) {
      if (requests[i] == nullptr) continue;
      requests[i]->status = status;
      finished.push_back(requests[i]);
    }
    NoteRun(times, absl::MakeSpan(finished).subspan(before));
  }
  world_->board().Advance();
  Complete(finished);
  if (tuner_ != nullptr) Tune(batch);
  const bool is_end = std::any_of(batch.begin(), batch.end(), [](const LogEntry& entry) {
    return entry.signature.kind == RequestKind::kLeave;
  });
  if (is_end) EndAll();
  return true;
}

// All ranks have left: what has not been asked for by all of them never will be.
void Engine::EndAll() {
  {
    // Whose request completes in the following keeps the role until all is over.
    std::lock_guard<std::mutex> lock(mutex_);
    runner_ = nullptr;
  }
  while (StepDirect()) {
  }
  FinishParcels();
  CompleteAll(absl::AbortedError(kHasLeft));
  watched_.clear();
}

// Every rank counts the same batches, so all are here together when a sample is over.
void Engine::Tune(const std::vector<LogEntry>& batch) {
  int64_t bytes = 0;
  for (const LogEntry& entry : batch) {
    bytes += static_cast<int64_t>(TensorBytes(entry.signature));
  }
  if (!tuner_->CountBatch(bytes)) return;
  TuneDecision decision = tuner_->Decide();
  const absl::Status told =
      world_->collectives().Broadcast({&decision, &decision, sizeof(decision), 0});
  if (BreakIfBroken(told)) return;
  const bool goes_on = tuner_->Adopt(decision, &config_);
  batch_wait_us_.store(config_.batch_wait_us, std::memory_order_relaxed);
  fusion_threshold_.store(config_.fusion_threshold, std::memory_order_relaxed);
  world_->SetThresholds(config_.thresholds);
  if (!goes_on) tuner_ = nullptr;
}

bool Engine::BreakIfBroken(const absl::Status& status) {
  if (!BreaksEpoch(status)) return false;
  Break(absl::IsAborted(status) ? status
                                : world_->waiter().EndEpoch(std::string(status.message())));
  return true;
}

void Engine::CompleteLocked(Request* request) {
  if (request->local != nullptr) request->local->pending = nullptr;
  AddPending(-1);
  if (joining_ != nullptr || leaving_) CompleteAwayLocked(*request);
  RankActivity& activity = world_->activity();
  activity.calls.store(activity.calls.load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
  activity.pending.store(static_cast<uint64_t>(pending_.load(std::memory_order_relaxed)),
                         std::memory_order_relaxed);
  activity.callers.store(static_cast<uint32_t>(waiting_.load(std::memory_order_relaxed)),
                         std::memory_order_relaxed);
  for (Draining* drain : draining_) drain->left -= request->sequence <= drain->last ? 1 : 0;
  EndLocked(request);
}

// Whoever waits may free it then, but for those whose observers are still to be told.
void Engine::EndLocked(Request* request) {
  if (request->observer != nullptr) request->next_ended = std::exchange(ended_, request);
  request->done.store(true, std::memory_order_release);
}

// In the order in which they ended.
void Engine::TellEnded() {
  Request* newest = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_ == nullptr) return;
    newest = std::exchange(ended_, nullptr);
    ++telling_;
  }
  Request* oldest = nullptr;
  while (newest != nullptr) {
    Request* const before = std::exchange(newest->next_ended, oldest);
    oldest = std::exchange(newest, before);
  }
  while (oldest != nullptr) {
    Request* const next = oldest->next_ended;
    oldest->observer->OnDone(oldest);
    oldest = next;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--telling_ == 0 && leave_.begun) changed_.notify_all();
}

// After this the submitters may free their requests. Only those who wait on `changed_` need a
// wake-up; the one who runs this as waiter sees `done` itself. With `last_work` that one has
// nothing left to do in its role, and leaves it here, under the same lock.
void Engine::Complete(absl::Span<Request* const> requests, bool last_work) {
  bool notify = false, marks = false, tells = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    marks = !deferred_.empty();
    for (Request* request : requests) {
      if (request == runner_ && last_work) {
        runner_ = nullptr;
        executing_ = false;
        request->ended_role = true;
      }
      CompleteLocked(request);
    }
    if (marks) SubmitDeferredLocked();
    notify = waiting_.load(std::memory_order_relaxed) > 0;
    tells = ended_ != nullptr;
  }
  if (marks) world_->waiter().Ring();
  if (notify) changed_.notify_all();
  if (tells) TellEnded();
}

void Engine::CompleteAll(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (broken_.ok()) broken_ = status;
    const auto end = [this](Request* request) {
      request->status = broken_;
      EndLocked(request);
    };
    for (LocalName* name : names_.Pending()) end(std::exchange(name->pending, nullptr));
    for (Request* request : deferred_) end(request);
    deferred_.clear();
    for (Request* request : pairs_.TakeAll()) end(request);
    marked_.clear();
    marked_count_.store(0, std::memory_order_relaxed);
    pending_.store(0);
    for (Draining* drain : draining_) drain->left = 0;
  }
  changed_.notify_all();
  TellEnded();
}

// The executor found the epoch broken: a leader tells the other hosts, and everything pending ends.
// In this order: what is on its way between hosts is read from the users' memory, and written
// there, as long as the transport goes on; who hears of the end may free it.
void Engine::Break(const absl::Status& status) {
  const HostPage& page = *world_->page();
  const bool aborted = page.aborted.load(std::memory_order_acquire) != 0;
  if (aborted && world_->leader() != nullptr) {
    world_->leader()->SpreadAbort(CauseOf(page));
  }
  if (aborted) world_->LetGo();
  CompleteAll(status);
  watched_.clear();
}

}  // namespace hvd
