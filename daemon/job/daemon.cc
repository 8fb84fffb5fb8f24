// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/daemon.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "daemon/job/launch_words.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"

namespace hvd::daemon {
namespace {

constexpr double kDefaultLease = 10;

}  // namespace

Daemon::Daemon(absl::StatusOr<ShimProcess> shim, std::function<void(v1::Event)> emit,
               Clock::duration launch_patience)
    : emit_(std::move(emit)),
      launch_patience_(launch_patience),
      stop_(&loop_, {[this] {
                       if (ranks_ != nullptr) ranks_->TermAll();
                     },
                     [this] { MaybeFinish(); }}) {
  loop_.ContinueWhenDue(kStoppedDaemonMargin);
  if (shim.ok()) {
    lease_.emplace(shim->lease.get());
    supervisor_ = std::make_unique<Supervisor>(
        *std::move(shim), &loop_,
        Supervisor::Handlers{[this](const ShimReport& report) { OnReport(report); },
                             [this](const std::string& how) { OnShimLost(how); }});
    stop_.Use(supervisor_.get());
  } else {
    no_shim_ = shim.status();
  }
  AwaitLaunch();
}

// A driver that is there may wait for its other hosts for as long as its --start-timeout says.
void Daemon::AwaitLaunch() {
  if (ranks_ != nullptr) return;
  const TimePoint until = heard_.load() + launch_patience_;
  if (until <= Clock::now()) return LoseDriver("no launch came, nor any other word of hvdrun's");
  loop_.At(until, [this] { AwaitLaunch(); });
}

// ---- from other threads ----

void Daemon::Receive(v1::Command command) {
  loop_.Post([this, command = std::move(command)] { Handle(command); });
}

void Daemon::DriverGone(std::string why) {
  loop_.Post([this, why = std::move(why)] { LoseDriver(why); });
}

void Daemon::Echoed(TimePoint sent) {
  heard_ = sent;
  if (lease_.has_value()) lease_->Renew(sent);
}

void Daemon::PassOn(int signal) {
  loop_.Post([this, signal] {
    if (ranks_ != nullptr) ranks_->Signal(signal);
  });
}

void Daemon::Run() {
  loop_.Run();
  if (supervisor_ != nullptr) supervisor_->End();
  if (ranks_ != nullptr) ranks_->relay()->FinishFiles(Clock::now() + kLastFilePatience);
}

// ---- commands ----

// Before a host is prepared there is nothing that the others could mean; why has been told.
void Daemon::Handle(const v1::Command& command) {
  if (command.has_prepare_host()) return Prepare(command.prepare_host());
  if (command.has_stop()) return BeginStop(command.stop());
  if (ranks_ != nullptr) HandlePrepared(command);
}

void Daemon::HandlePrepared(const v1::Command& command) {
  LinkServer* const links = ranks_->links();
  switch (command.kind_case()) {
    case v1::Command::kEpochPropose:
      return ranks_->Propose(command.epoch_propose());
    case v1::Command::kSpawnSlots:
      return ranks_->Spawn(command.spawn_slots());
    case v1::Command::kRetireSlot:
      return ranks_->Retire(command.retire_slot());
    case v1::Command::kEpochChange:
      return links->Change(command.epoch_change());
    case v1::Command::kEpochTable:
      return links->TableCame(command.epoch_table());
    case v1::Command::kEpochGo:
      return links->GoCame(command.epoch_go().epoch());
    case v1::Command::kEpochAbort:
      return links->Abort(command.epoch_abort().epoch(), command.epoch_abort().cause());
    case v1::Command::kSignal:
      return ranks_->Signal(command.signal().signal());
    case v1::Command::kStdinChunk:
      return ranks_->relay()->FeedStdin(command.stdin_chunk().data(), command.stdin_chunk().end());
    case v1::Command::kSetTimeline:
      return links->SetTimeline(command.set_timeline());
    case v1::Command::kSkipOutput:
      return ranks_->relay()->SetSkipping(command.skip_output().out(), command.skip_output().err());
    case v1::Command::kAskPending:
      return links->AskPending();
    case v1::Command::kPrepareHost:
    case v1::Command::kStop:
    case v1::Command::KIND_NOT_SET:
      return;
  }
}

void Daemon::Prepare(const v1::PrepareHost& prepare) {
  const auto fail = [this](absl::string_view why) {
    Emit(LaunchFailedEvent(kExitLauncher, std::string(why)));
  };
  if (ranks_ != nullptr) return fail("this daemon has launched its job already");
  if (!no_shim_.ok()) return fail(no_shim_.message());
  const bool with_gpus = !prepare.has_gpus_per_rank() || prepare.gpus_per_rank() > 0;
  absl::StatusOr<HostJob> job = HostJob::Make(prepare, ReadHostFacts(with_gpus));
  if (!job.ok()) return fail(job.status().message());
  slots_ = job->slots();
  ranks_ = std::make_unique<HostRanks>(
      *std::move(job),
      HostRanksParts{&loop_, supervisor_.get(), &output_, &store_,
                     [this](v1::Event event) { Emit(std::move(event)); }, [this] { MaybeFinish(); },
                     [this](const std::string& why) { BeginStop(true, why); }});
  const double lease = prepare.lease_s() > 0 ? prepare.lease_s() : kDefaultLease;
  lease_->Begin(Lease(Clock::now(), std::chrono::duration<double>(lease)));
  supervisor_->LeaseChanged();
  WatchLease();
}

// Beats renew it on their own thread; it is looked at when it would have ended.
void Daemon::WatchLease() {
  const TimePoint until = lease_->until();
  if (until > Clock::now()) {
    loop_.At(until, [this] { WatchLease(); });
    return;
  }
  v1::Event event;
  event.mutable_lease_ended();  // heard by one that was only paused
  Emit(std::move(event));
  // Its connection may live: where this process was only paused, the driver still hears why.
  const bool news = parting_.Silence();
  if (news) EndWithoutDriver("hvdrun has not been heard for the length of the lease");
}

// ---- what the shim says ----

// It speaks of ranks alone, which only a prepared host has.
void Daemon::OnReport(const ShimReport& report) {
  switch (report.tell) {
    case ShimTell::kStarted:
      return ranks_->OnStarted(report.slot, report.pid);
    case ShimTell::kSpawnFailed:
      return ranks_->OnSpawnFailed(report);
    case ShimTell::kExited:
      return ranks_->OnExited(report);
    case ShimTell::kEmpty:
      if (ranks_ == nullptr || ranks_->OnEmpty()) stop_.Emptied();
      return;
    case ShimTell::kSurvivors:
      return stop_.Counted(report.status);
    case ShimTell::kReady:
    case ShimTell::kFailed:
      return;  // said once, at the start
  }
}

// ---- what the driver hears ----

void Daemon::Notify(std::string text) {
  v1::Event event;
  event.mutable_notice()->set_text(std::move(text));
  Emit(std::move(event));
}

void Daemon::Emit(v1::Event event) {
  event.set_at_us(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
          .count());
  emit_(std::move(event));
}

}  // namespace hvd::daemon
