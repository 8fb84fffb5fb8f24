// SPDX-License-Identifier: Apache-2.0
// The part of Daemon that ends the job here: when the driver asks, when the driver, its lease or
// the shim is lost, or by a signal; and what is waited for until nobody is left to tell.
#include <chrono>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/job/daemon.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"

namespace hvd {

// ---- why ----

void Daemon::Leave(std::string why) {
  loop_.Post([this, why = std::move(why)] {
    if (std::exchange(leaving_, true)) return LoseDriver(why);
    // Not when every rank has ended: then nobody loses anything.
    const bool needed = !prepared_.has_value() || ends_told_ < spawned_;
    needed ? FailLaunch(kExitLauncher, why) : Notify(why);
    if (prepared_.has_value() && !stopped_told_) BeginStop(false, why);
    MaybeExit();
  });
}

void Daemon::Terminate(std::string why) {
  loop_.Post([this, why = std::move(why)] {
    if (!elastic() || stop_.has_value() || std::exchange(drain_asked_, true)) return Leave(why);
    Notify(
        absl::StrCat(why, ": its ranks are to leave at the next commit; a second one ends them"));
    v1::Event event;
    event.mutable_drain_asked()->set_cause(why);
    Emit(std::move(event));
  });
}

void Daemon::PassOn(int signal) {
  loop_.Post([this, signal] { SignalRanks(signal); });
}

void Daemon::SignalRanks(int signal) {
  if (!prepared_.has_value() || supervisor_ == nullptr) return;
  for (int slot = 0; slot < slots_; ++slot) {
    if (!vacant(slot)) supervisor_->Signal(slot, signal);
  }
}

void Daemon::BeginLease(std::chrono::duration<double> length) {
  lease_->Begin(Lease(Clock::now(), length));
  supervisor_->LeaseChanged();
  WatchLease();
}

// Beats renew it on their own thread; it is looked at when it would have ended.
void Daemon::WatchLease() {
  const TimePoint until = lease_->until();
  if (until <= Clock::now()) {
    v1::Event event;
    event.mutable_lease_ended();  // heard by one that was only paused
    Emit(std::move(event));
    return DriverSilent("hvdrun has not been heard for the length of the lease");
  }
  loop_.At(until, [this] { WatchLease(); });
}

void Daemon::LoseDriver(const std::string& why) {
  if (std::exchange(driver_gone_, true)) return;
  EndWithoutDriver(why);
}

// Its connection may live: where this process was only paused, the driver still hears why.
void Daemon::DriverSilent(const std::string& why) {
  if (driver_gone_ || std::exchange(driver_silent_, true)) return;
  EndWithoutDriver(why);
}

void Daemon::EndWithoutDriver(const std::string& why) {
  // In an elastic job the others go on without this host, so nobody here may.
  if (prepared_.has_value() && !stopped_told_) BeginStop(elastic(), why);
  MaybeExit();
}

void Daemon::OnShimLost(const std::string& how) {
  shim_lost_ = true;
  no_shim_ = absl::UnavailableError(absl::StrCat("the shim that holds the workers ", how));
  if (!prepared_.has_value()) return MaybeExit();
  const std::string cause =
      absl::StrCat(prepared_->name(), ": ", no_shim_.message(), "; its workers are ended");
  links_->Stop(cause);
  // A stop that was asked for has its cause already, and its shim is missed by nobody. One at the
  // end of the lease has not: this process may have been paused, and the shim tells.
  const bool asked = stop_.has_value() && stop_->begun() && !driver_silent_ && !driver_gone_;
  asked ? Notify(cause) : FailLaunch(kExitLauncher, cause);
  const int left = supervisor_->Sweep(mark());
  for (int slot = 0; slot < slots_; ++slot) {
    if (vacant(slot)) continue;
    table_->Exited(slot, SIGKILL, false);  // by the kernel or by the sweep
    OnEnded({.slot = slot, .status = SIGKILL, .with_shim = true});
  }
  relay_->Hurry();
  if (!stop_.has_value()) stop_.emplace();
  stop_->Begin(Clock::now(), true, grace_);
  stop_->Emptied();
  FinishStop(left);
}

// ---- one worker ----

// Ranks that wait for the worker are told first: it may use all of its grace.
void Daemon::Retire(const v1::RetireSlot& retire) {
  const bool known = prepared_.has_value() && retire.slot() < static_cast<uint32_t>(slots_.load());
  const int slot = static_cast<int>(retire.slot());
  if (!known || vacant(slot) || stop_.has_value()) return;
  if (elastic() && retire.removed()) return Remove(slot, retire.cause());
  links_->Retire(slot, retire.cause());
  TermRetired(slot, members_[slot]);
}

// It hears of it when it asks for the next epoch, and may end by itself first.
void Daemon::Remove(int slot, const std::string& cause) {
  links_->Remove(slot, cause);
  loop_.At(Clock::now() + std::chrono::duration_cast<Clock::duration>(grace_),
           [this, slot, member = members_[slot].load()] { TermRetired(slot, member); });
}

// The slot may be another's by now.
void Daemon::TermRetired(int slot, uint64_t member) {
  if (members_[slot] != member || vacant(slot) || shim_lost_) return;
  if (elastic()) {  // what others have left is not to be asked to end
    supervisor_->Signal(slot, SIGCONT);
    supervisor_->Signal(slot, SIGTERM);
  } else {
    supervisor_->Term(slot);
  }
  loop_.At(Clock::now() + std::chrono::duration_cast<Clock::duration>(grace_),
           [this, slot, member] { KillRetired(slot, member); });
}

void Daemon::KillRetired(int slot, uint64_t member) {
  if (members_[slot] == member && !vacant(slot) && !shim_lost_) supervisor_->Signal(slot, SIGKILL);
}

// ---- how ----

void Daemon::BeginStop(bool kill, const std::string& cause) {
  v1::Stop stop;
  stop.set_kill(kill);
  stop.set_cause(cause);
  BeginStop(stop);
}

void Daemon::BeginStop(const v1::Stop& stop) {
  if (!stop_.has_value()) stop_.emplace();
  TellLinksOfStop(stop);
  if (relay_ != nullptr) relay_->Hurry();
  const std::chrono::duration<double> grace(stop.has_grace_s() ? stop.grace_s() : grace_.count());
  Do(stop_->Begin(Clock::now(), stop.kill(), grace));
  ArmStop();  // the grace may be shorter now
  if (supervisor_ != nullptr && !shim_lost_) {
    // Awake and stopping: the shim leaves the grace to this process.
    const TimePoint now = Clock::now();
    const TimePoint until = stop.kill() && elastic() ? now : stop_->deadline().value_or(now);
    lease_->FixForShim(until + kShimMargin);
    supervisor_->LeaseChanged();
  }
  if (empty_) Do(stop_->Emptied());
}

// If something has failed, the links are told before TERM: what comes then is no rank's own fault.
// Otherwise a program's handler of TERM finds its collectives alive.
void Daemon::TellLinksOfStop(const v1::Stop& stop) {
  if (links_ == nullptr) return;
  stop.may_agree() ? links_->Close(stop.cause()) : links_->Stop(stop.cause());
}

void Daemon::Do(StopPlan::Do what) {
  switch (what) {
    case StopPlan::Do::kNothing:
      return;
    case StopPlan::Do::kTermAll:
      for (int slot = 0; prepared_.has_value() && slot < slots_; ++slot) {
        if (!vacant(slot)) supervisor_->Term(slot);
      }
      if (supervisor_ != nullptr) supervisor_->TermLeftovers();
      return ArmStop();
    case StopPlan::Do::kKillAll:
      if (supervisor_ != nullptr) supervisor_->KillAll();
      return ArmStop();
    case StopPlan::Do::kCount:
      if (supervisor_ == nullptr) return FinishStop(0);
      supervisor_->CountAll();
      return ArmStop();
    case StopPlan::Do::kEndShim:
      return supervisor_->KillShim();
    case StopPlan::Do::kDone:
      return FinishStop(0);
  }
}

void Daemon::ArmStop() {
  loop_.Cancel(stop_timer_);
  if (!stop_->deadline().has_value()) return;
  stop_timer_ = loop_.At(*stop_->deadline(), [this] { Do(stop_->Due(Clock::now())); });
}

// The shim has no descendant. That counts once every rank's end is known: an early word may have
// crossed a spawn.
void Daemon::NoteEmpty() {
  for (int slot = 0; prepared_.has_value() && slot < slots_; ++slot) {
    if (!vacant(slot)) return;
  }
  empty_ = true;
  if (stop_.has_value()) Do(stop_->Emptied());
}

void Daemon::FinishStop(int survivors) {
  loop_.Cancel(stop_timer_);
  stop_->Counted();
  if (!survivors_.has_value()) survivors_ = survivors;
  MaybeFinish();
}

// Stopped is the last word, after every rank's end; what cannot be killed is not waited for.
void Daemon::MaybeFinish() {
  if (!survivors_.has_value() || stopped_told_) return;
  if (prepared_.has_value() && table_.has_value() && *survivors_ == 0 && ends_told_ < spawned_) {
    return;
  }
  // A word about a file that hangs must come before the last one.
  const bool all_told = prepared_.has_value() && ends_told_ >= spawned_;
  if (all_told && relay_ != nullptr && relay_->open_files() > 0) return;
  stopped_told_ = true;
  v1::Event event;
  event.mutable_stopped()->set_survivors(*survivors_);
  Emit(std::move(event));
  MaybeExit();
}

void Daemon::MaybeExit() {
  if (prepared_.has_value() && !stopped_told_) return;
  if (driver_gone_) return loop_.Quit();
  if (leaving_ || driver_silent_) {
    loop_.At(Clock::now() + kLeavePatience, [this] { loop_.Quit(); });
  }
}

}  // namespace hvd
