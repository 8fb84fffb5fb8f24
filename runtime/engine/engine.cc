// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine.h"

#include <new>
#include <utility>

namespace hvd::rt {
Engine::Engine(std::unique_ptr<EpochWorld> world, const EngineConfig& config, EngineHelpers helpers)
    : world_(std::move(world)),
      notes_({world_->watch(), world_->members(), world_->rank(), world_->transport() != nullptr}),
      place_{world_.get(), &role_, &notes_},
      intake_(place_),
      executor_(place_, &intake_,
                {.config = config,
                 .tuner = std::move(helpers.tuner),
                 .device = std::move(helpers.device),
                 .on_device_told = [this] { WakeForDevice(); }}),
      thread_(BeginWork(), &intake_, &executor_) {}

// Before there is a second thread.
EnginePlace Engine::BeginWork() {
  kExecutor.AssertHeld();
  (void)OutOfMemory();  // while there is some
  (void)EndedWordless();
  const HierarchicalThresholds& thresholds = executor_.batches().thresholds();
  world_->set_collectives().SetThresholds(thresholds);
  intake_.ways().direct().set_stream_bytes(thresholds.host.stream_bytes);
  world_->waiter().set_on_question([this] { AnswerHvdd(); });
  return place_;
}

Engine::~Engine() {
  thread_.Stop();
  executor_.device().Drop();  // while there is somebody who hears it
  world_->waiter().set_on_question(nullptr);
  notes_.Leaves();
}

absl::Status Engine::Submit(Request* request) {
  bool arm = false;
  {
    ExecutorRole::Lock lock(&role_);
    if (absl::Status status = intake_.Submit(request, false); !status.ok()) return status;
    arm = !role_.taken();
  }
  world_->waiter().Ring();
  if (arm) thread_.Arm();
  return absl::OkStatus();
}

absl::Status Engine::SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests) {
  bool arm = false;
  {
    ExecutorRole::Lock lock(&role_);
    if (absl::Status status = intake_.SubmitGroup(requests); !status.ok()) return status;
    arm = !role_.taken();
  }
  world_->waiter().Ring();
  if (arm) thread_.Arm();
  return absl::OkStatus();
}

absl::Status Engine::Run(Request* request) {
  ExecutorRole::Lock lock(&role_);
  request->course.alone = intake_.pending().count() == 0;
  if (absl::Status status = intake_.Submit(request, true); !status.ok()) return status;
  if (role_.taken()) {
    // Before the ring, so that an executor of ours which sleeps gives the role up.
    role_.AddWaiter();
    lock.Unlock();
    world_->waiter().Ring();
    lock.Relock();
    return WaitLocked(request, &lock);
  }
  // The common case: an idle engine. The mark goes straight to the executor, which is this thread.
  if (BeginRun(request, &lock)) {
    lock.Unlock();
    OfferRole(role_.waiting(), true);
    return request->result.status;
  }
  {
    const ExecutorRole::Term term(&role_, &lock, request);
    world_->waiter().Ring();
    executor_.Until([request] { return request->done.load(std::memory_order_acquire); });
  }
  if (request->course.ended_role) {  // and the lock is free
    OfferRole(role_.waiting(), true);
    return request->result.status;
  }
  role_.AddWaiter();
  return WaitLocked(request, &lock);
}

absl::Status Engine::RunUntil(Request* request, Clock::time_point end, bool* done) {
  ExecutorRole::Lock lock(&role_);
  *done = true;
  request->course.alone = intake_.pending().count() == 0;
  if (absl::Status status = intake_.Submit(request, true); !status.ok()) return status;
  role_.AddWaiter();
  if (role_.taken()) {
    // Rings, so that an executor of ours which sleeps gives the role up.
    lock.Unlock();
    world_->waiter().Ring();
    lock.Relock();
  } else if (BeginRun(request, &lock)) {
    HandOver(&lock);
    return request->result.status;
  } else {
    world_->waiter().Ring();
  }
  *done = WaitUntilLocked(request, end, &lock);
  HandOver(&lock);
  return *done ? request->result.status : absl::OkStatus();
}

// With the role free. True: the request is done already.
bool Engine::BeginRun(Request* request, ExecutorRole::Lock* lock) {
  DirectWay::Outcome outcome;
  try {
    outcome = LookAtOnce(request);
  } catch (const std::bad_alloc& error) {
    const ExecutorRole::Term term(&role_, lock);
    const LocalName* name = request->course.local;
    executor_.BreakThrown(error, name != nullptr ? name->name : nullptr);
    return true;
  }
  if (outcome.kind == DirectWay::Outcome::Kind::kEpochEnds) {
    const ExecutorRole::Term term(&role_, lock);
    executor_.EndEpoch(intake_.ways().direct().fault());
  }
  return outcome.kind != DirectWay::Outcome::Kind::kNothing;
}

// Where a small request may end before anybody takes the role.
DirectWay::Outcome Engine::LookAtOnce(Request* request) {
  role_.AssertFree();
  const bool idle = request->course.local != nullptr && !intake_.pending().has_deferred();
  DirectWay& direct = intake_.ways().direct();
  if (idle && direct.MayEndAtOnce(*request)) {
    world_->waiter().Ring();
    DirectWay::Outcome outcome = direct.EndAtOnce();
    if (outcome.kind == DirectWay::Outcome::Kind::kFinished) executor_.completer().End(request);
    if (outcome.kind != DirectWay::Outcome::Kind::kNothing) return outcome;
  }
  direct.watch().TakeNew();
  return {};
}

absl::Status Engine::Wait(Request* request) {
  role_.AddWaiter();
  ExecutorRole::Lock lock(&role_);
  notes_.SetCallers(role_.callers());
  return WaitLocked(request, &lock);
}

absl::Status Engine::WaitLocked(Request* request, ExecutorRole::Lock* lock) {
  ExecuteOrWait([request] { return request->done.load(std::memory_order_acquire); }, lock);
  HandOver(lock);
  return request->result.status;
}

bool Engine::WaitUntil(Request* request, Clock::time_point end) {
  role_.AddWaiter();
  ExecutorRole::Lock lock(&role_);
  notes_.SetCallers(role_.callers());
  const bool done = WaitUntilLocked(request, end, &lock);
  HandOver(&lock);
  return done;
}

// The clock is looked at where the thread would sleep, and in between.
bool Engine::WaitUntilLocked(Request* request, Clock::time_point end, ExecutorRole::Lock* lock) {
  const auto done = [request] { return request->done.load(std::memory_order_acquire); };
  const auto over = [&] { return done() || Clock::now() >= end; };
  while (!over()) {
    if (role_.taken()) {
      role_.AwaitUntil(lock, end);
      continue;
    }
    const ExecutorRole::Term term(&role_, lock);
    world_->waiter().set_wake_at(end);
    executor_.Until(over);
    world_->waiter().set_wake_at(Clock::time_point::max());
  }
  return done();
}

// Nobody can make `done` true between the look at it and the wait: that takes the lock.
void Engine::ExecuteOrWait(absl::FunctionRef<bool()> done, ExecutorRole::Lock* lock) {
  while (!done()) {
    if (role_.taken()) {
      role_.Await(lock);
      continue;
    }
    const ExecutorRole::Term term(&role_, lock);
    executor_.Until(done);
  }
}

void Engine::HandOver(ExecutorRole::Lock* lock) {
  const int others = role_.RemoveWaiter();
  // Once the epoch is broken, what this rank was in stays to be read.
  if (intake_.pending().broken().ok()) notes_.SetCallers(role_.callers());
  const bool free = !role_.taken();
  lock->Unlock();
  OfferRole(others, free);
}

void Engine::OfferRole(int others, bool free) {
  if (others > 0) {
    role_.NotifyAll();
  } else if (free && thread_.MustListen()) {
    thread_.ArmNow();
  } else if (free && (intake_.pending().count() > 0 || executor_.device().has_told())) {
    thread_.Arm();
  }
}

bool Engine::Poll(Request* request) {
  if (request->done.load(std::memory_order_acquire)) return true;
  ExecutorRole::Lock lock(&role_, std::try_to_lock);
  if (!lock.held() || role_.taken()) return false;
  {
    const ExecutorRole::Term term(&role_, &lock);
    executor_.Poll();
  }
  role_.AddWaiter();
  HandOver(&lock);
  return request->done.load(std::memory_order_acquire);
}

Engine::Earlier::Earlier(Engine* engine) : engine_(*engine) {
  if (engine_.intake_.pending().open() == 0) return;
  const ExecutorRole::Lock lock(&engine_.role_);
  engine_.intake_.pending().BeginDrain(&drain_);
  begun_ = true;
}

Engine::Earlier::~Earlier() {
  if (!begun_) return;
  const ExecutorRole::Lock lock(&engine_.role_);
  engine_.intake_.pending().drains().Remove(&drain_);
}

void Engine::Earlier::Await() {
  if (begun_ && !drain_.over()) engine_.AwaitDrain(drain_);
}

void Engine::AwaitDrain(const Drain& drain) {
  ExecutorRole::Lock lock(&role_);
  role_.AddWaiter();
  notes_.SetCallers(role_.callers());
  if (role_.taken() && executor_.device().count() > 0) {
    // Rings, so that an executor of ours which sleeps gives the role up, and the device is hurried.
    lock.Unlock();
    world_->waiter().Ring();
    lock.Relock();
  }
  ExecuteOrWait([&] { return drain.over(); }, &lock);
  HandOver(&lock);
}

void Engine::Shutdown() {
  BeginLeave();
  FinishLeave();
}

void Engine::BeginLeave() {
  absl::Status submitted;
  {
    ExecutorRole::Lock lock(&role_);
    Request* leave = intake_.departure().BeginLeave();
    if (leave == nullptr) return;
    submitted = intake_.departure().LeaveSubmitted(intake_.Submit(leave, false));
  }
  if (submitted.ok()) return world_->waiter().Ring();
  if (!absl::IsAborted(submitted)) intake_.departure().EndUnleft(submitted);
}

void Engine::FinishLeave() {
  const MutexLock finish(&finish_mutex_);
  if (std::exchange(has_left_, true)) return;
  absl::Status left;
  {
    ExecutorRole::Lock lock(&role_);
    left = intake_.departure().leave_submitted();
  }
  if (left.ok()) left = Wait(intake_.departure().leave());
  ExecutorRole::Lock lock(&role_);
  if (left.ok() && world_->leader() != nullptr) {
    AwaitRole(&lock);
    const ExecutorRole::Term term(&role_, &lock);
    executor_.SayBye();
  }
  // No other thread may be about to finish what ends here.
  AwaitRole(&lock);
  {
    const ExecutorRole::Term term(&role_, &lock);
    executor_.EndEverything();
  }
  while (executor_.completer().is_telling()) role_.Await(&lock);
  lock.Unlock();
  OfferRole(role_.waiting(), true);
}

void Engine::AwaitRole(ExecutorRole::Lock* lock) {
  role_.AddWaiter();
  world_->waiter().Ring();  // the engine thread may sleep as executor
  while (role_.taken()) role_.Await(lock);
  role_.RemoveWaiter();
}

// Like a submission: whoever executes looks, and if nobody does, the engine thread.
void Engine::WakeForDevice() {
  bool arm = false;
  {
    ExecutorRole::Lock lock(&role_);
    arm = !role_.taken();
  }
  world_->waiter().Ring();
  if (arm) thread_.ArmNow();
}

// Without memory there is no answer, and nothing is lost by it.
// A request of which the others have done their part waits for this rank alone, wherever this rank
// is held up: it is no stall.
void Engine::AnswerHvdd() try {
  Ways& ways = intake_.ways();
  // What peers have said; an error comes again.
  if (ways.pairs().active()) (void)ways.pairs().Step().ok();
  ExecutorRole::Lock lock(&role_);
  std::vector<PendingRequest> waiting;
  for (const LocalName* name : intake_.pending().Named()) {
    if (!ways.IsAgreed(*name)) waiting.push_back({name->name, name->pending});
  }
  for (const Request* request : intake_.pending().deferred()) {
    waiting.push_back({&AgreedName(*request), request});
  }
  for (const PendingRequest& pair : ways.pairs().Pending()) waiting.push_back(pair);
  notes_.Answer(std::move(waiting));
} catch (const std::bad_alloc&) {
}

}  // namespace hvd::rt
