// SPDX-License-Identifier: Apache-2.0
// Host's part for hvdd's main thread: what daemon/job does with commands and with the shim's words.
#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "daemon/job/launch_plan.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

constexpr double kSpawnS = 5e-3;   // until the shim has started a worker, at most
constexpr double kDrainedS = 0.3;  // until a dead worker's output has ended, at most
constexpr int kNeverStarted = 125 << 8;

}  // namespace

void Host::StepMain() {
  const bool commanded = !down_.empty() && reachable();
  if (commanded && (main_.empty() || world_->scheduler.random().OneIn(2))) {
    const v1::Command command = std::move(down_.front());
    down_.pop_front();
    return Handle(command);
  }
  const auto next = std::move(main_.front());
  main_.pop_front();
  next();
}

void Host::Handle(const v1::Command& command) {
  if (epochs_ == nullptr && !command.has_prepare_host() && !command.has_stop()) return;
  switch (command.kind_case()) {
    case v1::Command::kPrepareHost:
      return Prepare(command.prepare_host());
    case v1::Command::kEpochPropose:
      return Propose(command.epoch_propose());
    case v1::Command::kSpawnSlots:
      return Spawn(command.spawn_slots());
    case v1::Command::kRetireSlot:
      return Retire(command.retire_slot());
    case v1::Command::kEpochChange:
      return links_.push_back(
          [this, epoch = command.epoch_change().epoch()] { epochs_->Change(LocalEpoch(epoch)); });
    case v1::Command::kEpochTable:
      return links_.push_back([this, table = command.epoch_table()] { epochs_->TableCame(table); });
    case v1::Command::kEpochGo:
      return links_.push_back(
          [this, epoch = command.epoch_go().epoch()] { epochs_->GoCame(epoch); });
    case v1::Command::kEpochAbort:
      return links_.push_back([this, abort = command.epoch_abort()] {
        if (world_->mutant == Mutant::kEarlyQuiet) SayQuietEarly(abort.epoch());
        epochs_->Abort(abort.epoch(), abort.cause());
      });
    case v1::Command::kStop:
      return BeginStop(command.stop().kill(), command.stop().cause());
    default:
      return;
  }
}

void Host::Prepare(const v1::PrepareHost& prepare) {
  prepare_ = prepare;
  epochs_ = std::make_unique<HostEpochs>(EpochOptions(), &workers_);
}

void Host::Propose(const v1::EpochPropose& propose) {
  absl::StatusOr<EpochPlan> plan = PlanEpoch(propose, prepare_);
  if (!plan.ok()) {
    return world_->checker.Fail(Violation::kMember, std::string(plan.status().message()));
  }
  if (plan->host < 0) return;
  if (world_->mutant == Mutant::kLocalEpochs) plan->epoch = ++counted_;
  links_.push_back([this, plan = *std::move(plan)]() mutable {
    resumes_at_ = plan.state.resume_commit;
    written_ = std::min(written_, resumes_at_);
    world_->checker.EpochCame(number_, plan.epoch);
    if (world_->mutant == Mutant::kVoidForgotten) plan.state.is_void = false;
    if (world_->mutant == Mutant::kBeyondForgotten && !plan.state.is_void) {
      plan.state.resume_commit = ~uint64_t{0};
    }
    epochs_->Propose(std::move(plan));
  });
}

// As Daemon::MayTake.
void Host::Spawn(const v1::SpawnSlots& spawn) {
  for (const v1::Seat& seat : spawn.seats()) {
    if (seat.slot() >= slots_.size() || !Vacant(static_cast<int>(seat.slot()))) {
      world_->checker.Fail(
          Violation::kMember,
          absl::StrCat("slot ", seat.slot(), " of host ", name_, " is given to member ",
                       seat.member(), " before its last one has ended"));
      return;
    }
    for (Worker* const worker : Living()) {
      if (worker->seat().share != static_cast<int>(seat.share())) continue;
      world_->checker.Fail(
          Violation::kMember,
          absl::StrCat("share ", seat.share(), " of host ", name_, " is given to member ",
                       seat.member(), "; member ", worker->seat().member, " lives there"));
    }
    slots_[seat.slot()] = Slot();
    slots_[seat.slot()].member = seat.member();
  }
  links_.push_back([this, spawn] { Expect(spawn); });
  spawned_ += spawn.seats_size();
  if (!std::exchange(launched_told_, true)) {
    v1::Event event;
    event.mutable_launched()->set_containment(v1::CONTAINMENT_NAMESPACE);
    Emit(std::move(event));
  }
  for (const v1::Seat& seat : spawn.seats()) StartWorker(seat);
}

void Host::StartWorker(const v1::Seat& seat) {
  const int slot = static_cast<int>(seat.slot());
  if (stopping_ || world_->scheduler.now() < cannot_start_until) {
    world_->counts.Count("launch failed");
    world_->bad_launches |= !stopping_;
    if (!any_started_ && !std::exchange(launch_failed_, true)) FailLaunch();
    return OnEnded(slot, kNeverStarted, true);
  }
  const Worker::Seat place = {seat.member(), slot, static_cast<int>(seat.share())};
  processes_.push_back(std::make_unique<Worker>(world_, this, place));
  Worker* const worker = processes_.back().get();
  slots_[slot].worker = worker;
  any_started_ = true;
  Random& random = world_->scheduler.random();
  worker->Start(random.Seconds(0, kSpawnS) + random.Seconds(0, world_->scenario.start_s));
  v1::Event event;
  event.mutable_rank_started()->set_member(seat.member());
  event.mutable_rank_started()->set_pid(static_cast<uint32_t>(1000 + processes_.size()));
  Emit(std::move(event));
}

// Where nothing has ever been started, it is the host's failure, or the program's.
void Host::FailLaunch() {
  v1::Event event;
  event.mutable_launch_failed()->set_exit_code(world_->scheduler.random().OneIn(2) ? 125 : 127);
  event.mutable_launch_failed()->set_message("it cannot be started");
  Emit(std::move(event));
}

void Host::Retire(const v1::RetireSlot& retire) {
  const int slot = static_cast<int>(retire.slot());
  if (Vacant(slot) || stopping_) return;
  const uint64_t member = slots_[slot].member;
  const std::string& cause = retire.cause();
  world_->counts.Count(retire.removed() ? "removal asked" : "retirement asked");
  if (!retire.removed()) {
    const bool lives = world_->mutant != Mutant::kLostIsGone;
    links_.push_back([this, slot, cause, lives] { epochs_->Gone(slot, cause, lives); });
    return Term(slot, member);
  }
  links_.push_back([this, slot, cause] { epochs_->Remove(slot, cause); });
  world_->scheduler.After(world_->scenario.grace_s, [this, slot, member] {
    if (lives_) main_.push_back([this, slot, member] { Term(slot, member); });
  });
}

void Host::Term(int slot, uint64_t member) {
  if (slots_[slot].member != member || Vacant(slot)) return;
  if (Worker* const worker = slots_[slot].worker; worker != nullptr) worker->Term();
  world_->scheduler.After(world_->scenario.grace_s, [this, slot, member] {
    if (lives_) main_.push_back([this, slot, member] { Kill(slot, member); });
  });
}

void Host::Kill(int slot, uint64_t member) {
  if (slots_[slot].member != member || Vacant(slot)) return;
  if (Worker* const worker = slots_[slot].worker; worker != nullptr) worker->Die(SIGKILL);
}

// ---- ends ----

void Host::OnEnded(int slot, int status, bool never_started) {
  const std::string how = never_started ? "never started" : absl::StrCat("ended with ", status);
  links_.push_back([this, slot, how, status] {
    const LinkFacts facts = EndOf(slot, how);
    TellDied(slot, facts, status);
    const double drained =
        world_->scheduler.random().OneIn(3) ? world_->scheduler.random().Seconds(0, kDrainedS) : 0;
    world_->scheduler.After(drained, [this, slot, facts, status] {
      if (lives_) main_.push_back([this, slot, facts, status] { TellEnd(slot, facts, status); });
    });
  });
}

void Host::TellEnd(int slot, const LinkFacts& facts, int status) {
  slots_[slot].told = true;
  v1::Event event;
  v1::RankExited& exited = *event.mutable_rank_exited();
  exited.set_member(slots_[slot].member);
  if (world_->mutant == Mutant::kAllsWell) status = 0;
  exited.set_exit_code(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
  exited.set_signal(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  exited.set_after_abort(facts.after_abort);
  exited.set_aborted(facts.aborted.cause);
  if (facts.aborted.rank >= 0) exited.set_abort_rank(facts.aborted.rank);
  if (facts.aborted.unreached >= 0) exited.set_unreached(facts.aborted.unreached);
  exited.set_joined(facts.joined);
  exited.set_left(facts.left);
  exited.set_refused(facts.refused);
  Emit(std::move(event));
  ++ends_told_;
  MaybeFinish();
}

void Host::BeginStop(bool kill, const std::string& cause) {
  stopping_ = true;
  if (epochs_ != nullptr) links_.push_back([this, cause] { epochs_->Stop(cause); });
  for (Worker* const worker : Living()) kill ? worker->Die(SIGKILL) : worker->Term();
  if (!kill) {
    world_->scheduler.After(world_->scenario.grace_s, [this] {
      if (lives_) main_.push_back([this] { KillAll(); });
    });
  }
  MaybeFinish();
}

// The others go on without this host, so nobody here may.
void Host::LoseDriver(const std::string& why) {
  if (std::exchange(driver_gone_, true)) return;
  if (lease_over_) {
    v1::Event event;
    event.mutable_lease_ended();
    Emit(std::move(event));
  }
  BeginStop(true, why);
}

void Host::MaybeFinish() {
  if (!stopping_ || stopped_told_ || ends_told_ < spawned_) return;
  stopped_told_ = true;
  v1::Event event;
  event.mutable_stopped()->set_survivors(0);
  Emit(std::move(event));
  // Then it waits for its driver to go.
  if (driver_gone_) End();
}

}  // namespace hvd::elastic_simulator
