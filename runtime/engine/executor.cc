// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/executor.h"

#include <exception>
#include <utility>

#include "runtime/transport/unreached.h"

namespace hvd::rt {
namespace {

// Looks before a wait is worth the time of two clock readings.
constexpr int kFreeLooks = 64;
// How long a rank that leaves lets tensors arrive that are on their way already.
constexpr auto kParcelTime = std::chrono::seconds(2);
// How long a leader waits at the end for the others' byes; they are on the way when nothing is
// wrong. One that comes later is nobody's: FrameChannel's generations.
constexpr auto kByeTime = std::chrono::seconds(2);

}  // namespace

Executor::Executor(const EnginePlace& place, Intake* intake, ExecutorTools tools)
    : place_(place),
      intake_(*intake),
      device_(std::move(tools.device), place.notes, std::move(tools.on_device_told)),
      batches_({.collectives = &place.world->collectives(),
                .device = &device_,
                .places = &intake->ways().places(),
                .notes = place.notes,
                .several_hosts = place.world->transport() != nullptr},
               tools.config, std::move(tools.tuner)),
      completer_(place, intake, &device_),
      turns_(place, {intake, &device_, &batches_, &completer_}) {}

void Executor::Until(absl::FunctionRef<bool()> stop) {
  try {
    Execute(stop);
  } catch (const std::exception& error) {
    BreakThrown(error, place_.notes->TakeAtWork());
  }
}

void Executor::Poll() {
  try {
    while (StepDirect() || StepPairs()) {
    }
  } catch (const std::exception& error) {
    BreakThrown(error, place_.notes->TakeAtWork());
  }
}

void Executor::Execute(absl::FunctionRef<bool()> stop) {
  while (!stop()) {
    if (Step()) continue;
    bool broken = false;
    {
      ExecutorRole::Lock lock(place_.role);
      broken = !intake_.pending().broken().ok();
    }
    if (place_.role->stopping()) return;
    if (broken) return Break(absl::OkStatus());
    if (const absl::Status waited = AwaitWork(stop); !waited.ok()) return Break(waited);
  }
}

void Executor::HurryDevice() {
  if (device_.count() == 0) return;
  bool waited_for = turns_.rests();
  {
    ExecutorRole::Lock lock(place_.role);
    waited_for = waited_for || intake_.pending().drains().any();
  }
  if (waited_for) device_.Hurry();
}

// Data that goes over the network moves beside the looks, not in them.
absl::Status Executor::AwaitWork(absl::FunctionRef<bool()> stop) {
  HurryDevice();
  Errands errands(this);
  const InBackground moving(&place_.world->waiter(), &errands);
  const bool alone = place_.world->transport() == nullptr;  // then nothing moves in the background
  return WaitForOthers([&] {
    kExecutor.AssertHeld();
    return direct().IsReady() || stop() || turns_.IsReady() ||
           (alone && pairs().active() && MovePairs()) || pairs().has_ended() ||
           device_.has_told() || place_.role->stopping();
  });
}

bool Executor::Errands::Step() {
  kExecutor.AssertHeld();
  const bool moved = executor_.pairs().active() && executor_.MovePairs();
  return (executor_.place_.world->leader() != nullptr && executor_.StepAgreement()) || moved;
}

// Time with nothing of ours under way is no waiting, and neither are a few looks.
absl::Status Executor::WaitForOthers(absl::FunctionRef<bool()> ready) {
  Waiter& waiter = place_.world->waiter();
  WorkNotes::Wait wait(place_.notes);
  if (intake_.pending().count() == 0) return waiter.Until(ready);
  int looks = waiter.policy().spins > kFreeLooks ? kFreeLooks : 1;
  return waiter.Until([&] {
    if (ready()) return true;
    wait.NoteLook(&looks);
    return false;
  });
}

bool Executor::Step() {
  if (StepDirect()) return true;
  if (pairs().active() && StepPairs()) return true;
  if (place_.world->leader() != nullptr && StepAgreement()) return true;
  if (device_.has_told() && StepDevice()) return true;
  return After(turns_.Step());
}

bool Executor::StepDirect() {
  if (direct().watch().has_new()) {
    ExecutorRole::Lock lock(place_.role);
    direct().watch().TakeNew();
  }
  const DirectWay::Outcome outcome = direct().Step();
  switch (outcome.kind) {
    case DirectWay::Outcome::Kind::kNothing:
      return false;
    case DirectWay::Outcome::Kind::kWorked:
      return true;
    case DirectWay::Outcome::Kind::kFinished: {
      Request* request = outcome.name->pending;
      completer_.Complete({&request, 1}, Completer::Over::kLastWork);
      return true;
    }
    case DirectWay::Outcome::Kind::kFellBack:
      FallBack(outcome.name);
      return true;
    case DirectWay::Outcome::Kind::kEpochEnds:
      EndEpoch(direct().fault());
      return true;
  }
  return false;
}

// Should it be refused all the same, the others would wait for it.
void Executor::FallBack(LocalName* name) {
  absl::Status marked;
  {
    ExecutorRole::Lock lock(place_.role);
    marked = intake_.FallBack(name);
  }
  place_.world->waiter().Ring();
  if (!marked.ok()) EndEpoch(marked);
}

// Also while the executor waits: what has ended is left for StepPairs.
bool Executor::MovePairs() {
  const absl::StatusOr<bool> moved = pairs().Step();
  if (moved.ok()) return *moved;
  (void)place_.world->waiter()
      .EndEpoch(std::string(moved.status().message()), UnreachedBy(moved.status()))
      .ok();  // the epoch is aborted now: the caller's wait says so
  return false;
}

bool Executor::StepPairs() {
  if (!pairs().active()) return false;
  const bool moved = MovePairs();
  const std::vector<Request*> ended = pairs().TakeEnded();
  for (const Request* request : ended) place_.notes->runs().RanPair(*request);
  if (!ended.empty()) completer_.Complete(ended);
  return moved || !ended.empty();
}

// A parcel that both sides have begun comes to its end by itself: then nothing writes to users'
// memory any more.
void Executor::FinishParcels() {
  const auto end = std::chrono::steady_clock::now() + kParcelTime;
  while (pairs().HasParcels() && std::chrono::steady_clock::now() < end &&
         place_.world->waiter().Check().ok()) {
    if (place_.world->transport() != nullptr) place_.world->transport()->Progress();
    StepPairs();
  }
}

bool Executor::StepAgreement() {
  const absl::StatusOr<bool> moved = place_.world->leader()->Step();
  if (!moved.ok()) {
    (void)place_.world->waiter()
        .EndEpoch(std::string(moved.status().message()), UnreachedBy(moved.status()))
        .ok();  // the epoch is aborted now: the caller's wait says so
    return false;
  }
  if (*moved) place_.world->waiter().Ring();
  return *moved;
}

// Takes the runs that have finished on the device: whoever drains may go on, and what waited for
// them is done now.
bool Executor::StepDevice() {
  const absl::StatusOr<std::vector<Unfinished::Ended>> ended = device_.TakeEnded();
  if (!ended.ok()) {
    EndEpoch(ended.status());
    return true;
  }
  completer_.NoteFinished(*ended);
  if (turns_.rests()) After(turns_.EndRest());
  return !ended->empty();
}

// Returns whether a batch has been executed, or something is over.
bool Executor::After(const absl::StatusOr<BatchTurns::Turn>& turn) {
  if (!turn.ok()) {
    EndEpoch(turn.status());
    return true;
  }
  if (*turn == BatchTurns::Turn::kAllLeft) EndAll();
  return *turn != BatchTurns::Turn::kNothing;
}

// All ranks have left: what has not been asked for by all of them never will be.
void Executor::EndAll() {
  {
    ExecutorRole::Lock lock(place_.role);
    place_.role->KeepToTheEnd();
  }
  while (StepDirect()) {
  }
  FinishParcels();
  completer_.CompleteAll(absl::AbortedError(kHasLeft));
}

void Executor::EndEverything() {
  try {
    const absl::Status broken = place_.world->waiter().Check();
    if (broken.ok()) EndAll();
    if (!broken.ok()) Break(broken);  // a leader's peers on other hosts may not know yet
  } catch (const std::exception& error) {
    BreakThrown(error, place_.notes->TakeAtWork());
  }
}

// What rests of requests is pending still.
void Executor::EndEpoch(const absl::Status& why) {
  turns_.Forget();
  completer_.EndEpoch(why);
}

void Executor::BreakThrown(const std::exception& error, const std::string* at_work) {
  turns_.Forget();
  completer_.BreakThrown(error, at_work != nullptr ? *at_work : std::string_view());
}

void Executor::Break(const absl::Status& status) {
  turns_.Forget();
  completer_.Break(status);
}

void Executor::SayBye() {
  try {
    AwaitByes();
  } catch (const std::exception& error) {
    BreakThrown(error, place_.notes->TakeAtWork());
  }
}

void Executor::AwaitByes() {
  Leader& leader = *place_.world->leader();
  const auto end = std::chrono::steady_clock::now() + kByeTime;
  leader.SayBye();
  while (std::chrono::steady_clock::now() < end && place_.world->waiter().Check().ok()) {
    place_.world->transport()->Progress();
    const absl::StatusOr<bool> stepped = leader.Step();
    const absl::StatusOr<bool> unsent = leader.HasUnsent();
    if (!stepped.ok() || !unsent.ok()) return;
    if (!*unsent && (!leader.is_root() || leader.HeardAllByes())) return;
  }
}

}  // namespace hvd::rt
