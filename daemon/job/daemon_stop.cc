// SPDX-License-Identifier: Apache-2.0
// The part of Daemon that ends the job here: when the driver asks, when the driver, its lease or
// the shim is lost, or by a signal; and what is waited for until nobody is left to tell.
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/job/daemon.h"
#include "daemon/job/launch_words.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"

namespace hvd::daemon {

// ---- why ----

void Daemon::Leave(std::string why) {
  loop_.Post([this, why = std::move(why)] {
    if (!parting_.Leave()) return LoseDriver(why);
    // Not when every rank has ended: then nobody loses anything.
    const bool needed = ranks_ == nullptr || !ranks_->job().all_told();
    needed ? Emit(LaunchFailedEvent(kExitLauncher, why)) : Notify(why);
    if (ranks_ != nullptr && !parting_.told()) BeginStop(false, why);
    MaybeExit();
  });
}

void Daemon::Terminate(std::string why) {
  loop_.Post([this, why = std::move(why)] {
    if (!elastic() || stop_.begun() || !parting_.AskToDrain()) return Leave(why);
    Notify(
        absl::StrCat(why, ": its ranks are to leave at the next commit; a second one ends them"));
    v1::Event event;
    event.mutable_drain_asked()->set_cause(why);
    Emit(std::move(event));
  });
}

void Daemon::LoseDriver(const std::string& why) {
  if (parting_.LoseDriver()) EndWithoutDriver(why);
}

void Daemon::EndWithoutDriver(const std::string& why) {
  // In an elastic job the others go on without this host, so nobody here may.
  if (ranks_ != nullptr && !parting_.told()) BeginStop(elastic(), why);
  MaybeExit();
}

void Daemon::OnShimLost(const std::string& how) {
  shim_lost_ = true;
  no_shim_ = absl::UnavailableError(absl::StrCat("the shim that holds the workers ", how));
  if (ranks_ == nullptr) return MaybeExit();
  const std::string cause =
      absl::StrCat(ranks_->job().name(), ": ", no_shim_.message(), "; its workers are ended");
  ranks_->links()->Stop(cause);
  // A stop that was asked for has its cause already, and its shim is missed by nobody. One at the
  // end of the lease has not: this process may have been paused, and the shim tells.
  const bool asked = stop_.begun() && !parting_.without_driver();
  asked ? Notify(cause) : Emit(LaunchFailedEvent(kExitLauncher, cause));
  const int left = supervisor_->Sweep("HVD_JOB_MARK=" + ranks_->job().prepared().job());
  ranks_->OnShimLost();
  stop_.Swept(left);
}

// ---- how ----

void Daemon::BeginStop(bool kill, const std::string& cause) {
  v1::Stop stop;
  stop.set_kill(kill);
  stop.set_cause(cause);
  BeginStop(stop);
}

void Daemon::BeginStop(const v1::Stop& stop) {
  double grace = kDefaultGraceS;
  if (ranks_ != nullptr) {
    ranks_->BeginStop(stop);
    grace = ranks_->job().prepared().grace_s();
  }
  stop_.Begin(stop.kill(),
              std::chrono::duration<double>(stop.has_grace_s() ? stop.grace_s() : grace));
  if (supervisor_ != nullptr && !shim_lost_) SetShimsLease(stop.kill());
  if (ranks_ == nullptr || ranks_->empty()) stop_.Emptied();
}

// Awake and stopping: the shim leaves the grace to this process.
void Daemon::SetShimsLease(bool kill) {
  const TimePoint now = Clock::now();
  const TimePoint until = kill && elastic() ? now : stop_.deadline().value_or(now);
  lease_->FixForShim(until + kShimMargin);
  supervisor_->LeaseChanged();
}

// Stopped is the last word.
void Daemon::MaybeFinish() {
  const bool told = ranks_ == nullptr || ranks_->job().all_told();
  const bool files = ranks_ != nullptr && ranks_->relay()->open_files() > 0;
  if (!parting_.TakeLastWord(stop_.survivors(), told, files)) return;
  v1::Event event;
  event.mutable_stopped()->set_survivors(*stop_.survivors());
  Emit(std::move(event));
  MaybeExit();
}

void Daemon::MaybeExit() {
  switch (parting_.MayGo(ranks_ != nullptr)) {
    case Parting::Go::kNotYet:
      return;
    case Parting::Go::kNow:
      return loop_.Quit();
    case Parting::Go::kSoon:
      loop_.At(Clock::now() + kLeavePatience, [this] { loop_.Quit(); });
  }
}

}  // namespace hvd::daemon
