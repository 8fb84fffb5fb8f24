// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/executor.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "runtime/engine/execution/reduction.h"
#include "runtime/transport/unreached.h"

namespace hvd {
namespace {

// Looks before a wait is worth the time of two clock readings.
constexpr int kFreeLooks = 64;
// How long a rank that leaves lets tensors arrive that are on their way already.
constexpr auto kParcelTime = std::chrono::seconds(2);
// How long a leader waits at the end for the others' byes; they are on the way when nothing is
// wrong. One that comes later is nobody's: FrameChannel's generations.
constexpr auto kByeTime = std::chrono::seconds(2);

}  // namespace

void Executor::Until(absl::FunctionRef<bool()> stop) {
  try {
    Execute(stop);
  } catch (const std::exception& error) {
    BreakThrown(error);
  }
}

void Executor::Poll() {
  try {
    while (StepDirect() || StepPairs()) {
    }
  } catch (const std::exception& error) {
    BreakThrown(error);
  }
}

void Executor::BreakThrown(const std::exception& error) {
  const std::string* at_work = parts_.notes->at_work();
  parts_.world->board().AbortThrown(error, at_work != nullptr ? *at_work : std::string_view());
  parts_.notes->set_at_work(nullptr);
  absl::Status cause;
  try {
    // Another's abort may be half written: its words are the cause.
    cause = parts_.world->waiter().EndEpoch(kNoMemory);
  } catch (const std::bad_alloc&) {
    cause = EndedWordless();
  }
  Break(cause);
}

void Executor::Execute(absl::FunctionRef<bool()> stop) {
  while (!stop()) {
    if (Step()) continue;
    bool broken = false;
    {
      ExecutorRole::Lock lock(parts_.role);
      broken = !parts_.pending->broken().ok();
    }
    if (parts_.role->stopping()) return;
    if (broken) return Break(absl::OkStatus());
    parts_.notes->SetState(RankState::kWaiting);
    const absl::Status waited = AwaitWork(stop);
    parts_.notes->SetState(RankState::kIdle);
    if (!waited.ok()) return Break(waited);
  }
}

void Executor::HurryDevice() {
  if (parts_.device->count() == 0) return;
  bool waited_for = rest_.any();
  {
    ExecutorRole::Lock lock(parts_.role);
    waited_for = waited_for || parts_.pending->is_draining();
  }
  if (waited_for) parts_.device->Hurry();
}

// Data that goes over the network moves beside the looks, not in them.
absl::Status Executor::AwaitWork(absl::FunctionRef<bool()> stop) {
  HurryDevice();
  Errands errands(this);
  const InBackground moving(&parts_.world->waiter(), &errands);
  const bool alone = parts_.world->transport() == nullptr;  // then nothing moves in the background
  return WaitForOthers([&] {
    kExecutor.AssertHeld();
    return parts_.direct->IsReady() || stop() || (parts_.board->IsReady() && !MustRest()) ||
           (alone && parts_.pairs->active() && MovePairs()) || parts_.pairs->has_ended() ||
           parts_.device->has_told() || parts_.role->stopping();
  });
}

bool Executor::Errands::Step() {
  kExecutor.AssertHeld();
  const bool moved = executor_.parts_.pairs->active() && executor_.MovePairs();
  return (executor_.parts_.world->leader() != nullptr && executor_.StepAgreement()) || moved;
}

// Time with nothing of ours under way is no waiting, and neither are a few looks.
absl::Status Executor::WaitForOthers(absl::FunctionRef<bool()> ready) {
  Waiter& waiter = parts_.world->waiter();
  if (parts_.pending->count() == 0) return waiter.Until(ready);
  int looks = waiter.policy().spins > kFreeLooks ? kFreeLooks : 1;
  int64_t begin_ns = 0;
  absl::Status waited = waiter.Until([&] {
    if (ready()) return true;
    parts_.notes->Waits();
    if (looks > 0 && --looks == 0) begin_ns = Timeline::Now();
    return false;
  });
  if (begin_ns != 0) parts_.notes->Waited(Timeline::Now() - begin_ns);
  return waited;
}

bool Executor::Step() {
  if (StepDirect()) return true;
  if (parts_.pairs->active() && StepPairs()) return true;
  if (parts_.world->leader() != nullptr && StepAgreement()) return true;
  if (parts_.device->has_told() && StepDevice()) return true;
  return StepBoard();
}

bool Executor::StepDirect() {
  if (parts_.direct->has_marked()) {
    ExecutorRole::Lock lock(parts_.role);
    parts_.direct->WatchMarked();
  }
  const DirectWay::Outcome outcome = parts_.direct->Step();
  switch (outcome.kind) {
    case DirectWay::Outcome::Kind::kNothing:
      return false;
    case DirectWay::Outcome::Kind::kWorked:
      return true;
    case DirectWay::Outcome::Kind::kFinished: {
      Request* request = outcome.name->pending;
      parts_.completer->Complete({&request, 1}, Completer::Over::kLastWork);
      return true;
    }
    case DirectWay::Outcome::Kind::kFellBack:
      FallBack(outcome.name);
      return true;
    case DirectWay::Outcome::Kind::kEpochEnds:
      EndEpoch(parts_.direct->fault());
      return true;
  }
  return false;
}

// Should it be refused all the same, the others would wait for it.
void Executor::FallBack(LocalName* name) {
  absl::Status marked;
  {
    ExecutorRole::Lock lock(parts_.role);
    marked = parts_.intake->FallBack(name);
  }
  parts_.world->waiter().Ring();
  if (!marked.ok()) EndEpoch(marked);
}

// Also while the executor waits: what has ended is left for StepPairs.
bool Executor::MovePairs() {
  const absl::StatusOr<bool> moved = parts_.pairs->Step();
  if (moved.ok()) return *moved;
  (void)parts_.world->waiter()
      .EndEpoch(std::string(moved.status().message()), UnreachedBy(moved.status()))
      .ok();  // the epoch is aborted now: the caller's wait says so
  return false;
}

bool Executor::StepPairs() {
  if (!parts_.pairs->active()) return false;
  const bool moved = MovePairs();
  const std::vector<Request*> ended = parts_.pairs->TakeEnded();
  for (const Request* request : ended) parts_.notes->RanPair(*request);
  if (!ended.empty()) parts_.completer->Complete(ended);
  return moved || !ended.empty();
}

// A parcel that both sides have begun comes to its end by itself: then nothing writes to users'
// memory any more.
void Executor::FinishParcels() {
  const auto end = std::chrono::steady_clock::now() + kParcelTime;
  while (parts_.pairs->HasParcels() && std::chrono::steady_clock::now() < end &&
         parts_.world->waiter().Check().ok()) {
    if (parts_.world->transport() != nullptr) parts_.world->transport()->Progress();
    StepPairs();
  }
}

bool Executor::StepAgreement() {
  const absl::StatusOr<bool> moved = parts_.world->leader()->Step();
  if (!moved.ok()) {
    (void)parts_.world->waiter()
        .EndEpoch(std::string(moved.status().message()), UnreachedBy(moved.status()))
        .ok();  // the epoch is aborted now: the caller's wait says so
    return false;
  }
  if (*moved) parts_.world->waiter().Ring();
  return *moved;
}

// Takes the runs that have finished on the device: whoever drains may go on, and what waited for
// them is done now.
bool Executor::StepDevice() {
  const absl::StatusOr<std::vector<Unfinished::Ended>> ended = parts_.device->TakeEnded();
  if (!ended.ok()) {
    EndEpoch(ended.status());
    return true;
  }
  parts_.completer->NoteFinished(*ended);
  if (rest_.any() && !MustRest()) DoRest();
  return !ended->empty();
}

bool Executor::StepBoard() {
  if (MustRest()) return false;
  AgreedBatch batch;
  bool closed = false;
  batch.entries = parts_.board->Next(&closed);
  if (closed) parts_.world->waiter().Ring();
  if (batch.entries.empty()) return false;
  // A request is missing, too, when this rank's mark was refused because the epoch ends.
  if (!FindRequests(&batch)) {
    Break(parts_.world->waiter().EndEpoch(
        "the schedule names a tensor that this rank has not submitted"));
    return true;
  }
  ExecuteBatch(std::move(batch));
  return true;
}

// False when something is missing that this rank must have submitted.
bool Executor::FindRequests(AgreedBatch* batch) {
  batch->requests.reserve(batch->entries.size());
  ExecutorRole::Lock lock(parts_.role);
  for (const LogEntry& entry : batch->entries) {
    LocalName* name = parts_.board->Take(entry.number);
    batch->requests.push_back(name != nullptr ? name->pending : nullptr);
    if (name == nullptr && !parts_.departure->has_joined()) return false;
    if (name == nullptr) continue;
    parts_.direct->TakeNumber(entry, name, parts_.pending->submissions());
    name->board.wants_number = false;
  }
  return true;
}

void Executor::ExecuteBatch(AgreedBatch batch) {
  ExecutedBatch executed;
  const absl::Status status = parts_.batches->Execute(&batch, &executed);
  if (!status.ok()) return EndEpoch(status);
  const int size = parts_.world->topology().size();
  const auto by_all = [size](const LogEntry& entry) { return AllContribute(entry, size); };
  if (std::any_of(batch.entries.begin(), batch.entries.end(), by_all)) parts_.pairs->AllAreBack();
  parts_.board->Advance();
  rest_.tunes = parts_.batches->EndsSample(batch);
  // A leave beside ranks that have joined ends nothing in order: who left has told the others.
  rest_.is_end = std::any_of(batch.entries.begin(), batch.entries.end(), [](const LogEntry& entry) {
    return entry.signature.kind == RequestKind::kLeave && entry.error.empty();
  });
  if (!executed.launched.empty()) {
    parts_.completer->Complete(executed.launched, Completer::Over::kLaunched);
  }
  std::vector<Request*>& finished = executed.finished;
  if (parts_.device->count() > 0) {
    const auto departs =
        std::stable_partition(finished.begin(), finished.end(), [](const Request* request) {
          return request->signature.kind != RequestKind::kJoin &&
                 request->signature.kind != RequestKind::kLeave;
        });
    rest_.requests.assign(departs, finished.end());
    finished.erase(departs, finished.end());
  }
  if (executed.launched.empty() || !finished.empty()) parts_.completer->Complete(finished);
  if (rest_.any() && !MustRest()) DoRest();
}

void Executor::DoRest() {
  const Rest rest = std::exchange(rest_, {});
  if (!rest.requests.empty()) parts_.completer->Complete(rest.requests);
  if (rest.tunes) {
    if (const absl::Status tuned = Tune(); !tuned.ok()) return EndEpoch(tuned);
  }
  if (rest.is_end) EndAll();
}

absl::Status Executor::Tune() {
  if (absl::Status tuned = parts_.batches->Tune(); !tuned.ok()) return tuned;
  parts_.world->SetThresholds(parts_.batches->thresholds());
  parts_.direct->set_stream_bytes(parts_.batches->thresholds().host.stream_bytes);
  return absl::OkStatus();
}

// All ranks have left: what has not been asked for by all of them never will be.
void Executor::EndAll() {
  {
    ExecutorRole::Lock lock(parts_.role);
    parts_.role->KeepToTheEnd();
  }
  while (StepDirect()) {
  }
  FinishParcels();
  parts_.completer->CompleteAll(absl::AbortedError(kHasLeft));
}

void Executor::EndEverything() {
  try {
    const absl::Status broken = parts_.world->waiter().Check();
    if (broken.ok()) EndAll();
    if (!broken.ok()) Break(broken);  // a leader's peers on other hosts may not know yet
  } catch (const std::exception& error) {
    BreakThrown(error);
  }
}

void Executor::EndEpoch(const absl::Status& why) {
  Waiter& waiter = parts_.world->waiter();
  Break(absl::IsAborted(why) ? why : waiter.EndEpoch(std::string(why.message()), UnreachedBy(why)));
}

// The executor found the epoch broken: a leader tells the other hosts, and everything pending ends.
// In this order: what is on its way between hosts is read from the users' memory, and written
// there, as long as the transport goes on, and so it is with the device; who hears of the end may
// free it.
void Executor::Break(const absl::Status& status) {
  EpochWorld& world = *parts_.world;
  const HostPage& page = *world.page();
  const bool aborted = page.aborted.load(std::memory_order_acquire) != 0;
  try {
    if (aborted && world.leader() != nullptr) world.leader()->SpreadAbort(CauseOf(page));
  } catch (const std::bad_alloc&) {  // at the leave once more; and hvdd tells them when this ends
  }
  if (aborted) world.LetGo();
  AbortDevice(status);
  parts_.completer->CompleteAll(status);
}

void Executor::AbortDevice(const absl::Status& status) {
  rest_ = {};  // what it has of requests is pending still
  if (!parts_.device->must_abort()) return;
  try {
    const absl::Status cause = parts_.world->waiter().Check();
    parts_.device->Abort(cause.ok() ? status : cause);
  } catch (const std::bad_alloc&) {
    parts_.device->Abort(EndedWordless());
  }
}

void Executor::SayBye() {
  try {
    AwaitByes();
  } catch (const std::exception& error) {
    BreakThrown(error);
  }
}

void Executor::AwaitByes() {
  Leader& leader = *parts_.world->leader();
  const auto end = std::chrono::steady_clock::now() + kByeTime;
  leader.SayBye();
  while (std::chrono::steady_clock::now() < end && parts_.world->waiter().Check().ok()) {
    parts_.world->transport()->Progress();
    const absl::StatusOr<bool> stepped = leader.Step();
    const absl::StatusOr<bool> unsent = leader.HasUnsent();
    if (!stepped.ok() || !unsent.ok()) return;
    if (!*unsent && (!leader.is_root() || leader.HeardAllByes())) return;
  }
}

}  // namespace hvd
