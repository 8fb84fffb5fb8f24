// SPDX-License-Identifier: Apache-2.0
// Host's part for hvdd's main thread: what daemon/job does with commands and with the shim's words.
#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "daemon/job/end_words.h"
#include "daemon/job/host_job.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

constexpr double kSpawnS = 5e-3;   // until the shim has started a worker, at most
constexpr double kDrainedS = 0.3;  // until a dead worker's output has ended, at most
constexpr int kNeverStarted = 125 << 8;
constexpr int kCores = 256;

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
  daemon::HostFacts facts;
  for (int core = 0; core < kCores; ++core) facts.devices.cores.push_back(core);
  absl::StatusOr<daemon::HostJob> job = daemon::HostJob::Make(prepare, std::move(facts));
  if (!job.ok()) {
    return world_->checker.Fail(Violation::kMember, std::string(job.status().message()));
  }
  job_.emplace(*std::move(job));
  epochs_ = std::make_unique<daemon::HostEpochs>(EpochOptions(), &workers_);
}

void Host::Propose(const v1::EpochPropose& propose) {
  absl::StatusOr<daemon::EpochPlan> plan = job_->Propose(propose);
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

// As HostRanks::Spawn; there is nothing that hvdrun should have to be refused.
void Host::Spawn(const v1::SpawnSlots& spawn) {
  if (const absl::Status placed = job_->Place(spawn); !placed.ok()) {
    return world_->checker.Fail(Violation::kMember, std::string(placed.message()));
  }
  for (const v1::Seat& seat : spawn.seats()) {
    if (!CheckSeat(seat)) return;
    job_->Take(seat);
    slots_[seat.slot()] = nullptr;
  }
  links_.push_back([this, spawn] { Expect(spawn); });
  if (!std::exchange(launched_told_, true)) {
    v1::Event event;
    event.mutable_launched()->set_containment(v1::CONTAINMENT_NAMESPACE);
    Emit(std::move(event));
  }
  for (const v1::Seat& seat : spawn.seats()) StartWorker(seat);
}

bool Host::CheckSeat(const v1::Seat& seat) {
  if (!job_->MayTake(seat)) {
    world_->checker.Fail(
        Violation::kMember,
        absl::StrCat("slot ", seat.slot(), " of host ", name_, " is given to member ",
                     seat.member(), " before its last one has ended, or without a plan"));
    return false;
  }
  for (Worker* const worker : Living()) {
    if (worker->seat().share != static_cast<int>(seat.share())) continue;
    world_->checker.Fail(
        Violation::kMember,
        absl::StrCat("share ", seat.share(), " of host ", name_, " is given to member ",
                     seat.member(), "; member ", worker->seat().member, " lives there"));
  }
  return true;
}

void Host::StartWorker(const v1::Seat& seat) {
  const int slot = static_cast<int>(seat.slot());
  if (stopping_ || world_->scheduler.now() < cannot_start_until) {
    world_->counts.Count("launch failed");
    world_->bad_launches |= !stopping_;
    return NeverStart(slot);
  }
  const Worker::Seat place = {seat.member(), slot, static_cast<int>(seat.share())};
  processes_.push_back(std::make_unique<Worker>(world_, this, place));
  Worker* const worker = processes_.back().get();
  slots_[slot] = worker;
  const int pid = static_cast<int>(1000 + processes_.size());
  job_->Started(slot, pid);
  Random& random = world_->scheduler.random();
  worker->Start(random.Seconds(0, kSpawnS) + random.Seconds(0, world_->scenario.start_s));
  v1::Event event;
  event.mutable_rank_started()->set_member(seat.member());
  event.mutable_rank_started()->set_pid(pid);
  Emit(std::move(event));
}

void Host::NeverStart(int slot) {
  if (job_->FailsLaunch()) FailLaunch();
  daemon::RankDeath death;
  death.slot = slot;
  death.status = kNeverStarted;
  death.never_started = true;
  OnEnded(std::move(death));
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
  if (job_->vacant(slot) || stopping_) return;
  const uint64_t member = job_->member(slot);
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
  if (!job_->IsIn(slot, member)) return;
  if (Worker* const worker = slots_[slot]; worker != nullptr) worker->Term();
  world_->scheduler.After(world_->scenario.grace_s, [this, slot, member] {
    if (lives_) main_.push_back([this, slot, member] { Kill(slot, member); });
  });
}

void Host::Kill(int slot, uint64_t member) {
  if (!job_->IsIn(slot, member)) return;
  if (Worker* const worker = slots_[slot]; worker != nullptr) worker->Die(SIGKILL);
}

// ---- ends ----

// As HostRanks::OnEnded.
void Host::OnEnded(daemon::RankDeath death) {
  if (world_->mutant == Mutant::kAllsWell) death.status = 0;
  links_.push_back([this, known = job_->Ended(std::move(death))]() mutable {
    known.link = EndOf(known);
    Emit(daemon::DiedEvent(known));
    const double drained =
        world_->scheduler.random().OneIn(3) ? world_->scheduler.random().Seconds(0, kDrainedS) : 0;
    world_->scheduler.After(drained, [this, known] {
      if (lives_) main_.push_back([this, known] { TellEnd(known); });
    });
  });
}

void Host::TellEnd(const daemon::RankDeath& death) {
  job_->Drained(death.slot, {});
  job_->LinkSpoke(death.slot, death.link);
  const std::optional<daemon::RankDeath> end = job_->TakeEnd(death.slot);
  if (end.has_value()) Emit(daemon::ExitedEvent(*end, false, TimePoint()));
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
  if (!parting_.LoseDriver()) return;
  if (lease_over_) {
    v1::Event event;
    event.mutable_lease_ended();
    Emit(std::move(event));
  }
  BeginStop(true, why);
}

void Host::MaybeFinish() {
  const std::optional<int> survivors = stopping_ ? std::make_optional(0) : std::nullopt;
  if (!parting_.TakeLastWord(survivors, !job_.has_value() || job_->all_told(), false)) return;
  v1::Event event;
  event.mutable_stopped()->set_survivors(0);
  Emit(std::move(event));
  // Then it waits for its driver to go.
  if (parting_.MayGo(true) == daemon::Parting::Go::kNow) End();
}

}  // namespace hvd::elastic_simulator
