#include "daemon/daemon.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

// A daemon that nobody gives a launch to, on a link that stays silent, must end too.
constexpr auto kLaunchPatience = std::chrono::minutes(5);
constexpr auto kFilePatience = std::chrono::seconds(2);
// For our last words, which end the driver's link.
constexpr auto kLeavePatience = std::chrono::seconds(1);

}  // namespace

Daemon::Daemon(absl::StatusOr<ShimProcess> shim, std::function<void(v1::Event)> emit)
    : emit_(std::move(emit)) {
  if (shim.ok()) {
    lease_.emplace(shim->lease.get());
    supervisor_ = std::make_unique<Supervisor>(
        *std::move(shim), &loop_,
        Supervisor::Handlers{[this](const ShimReport& report) { OnReport(report); },
                             [this](const std::string& how) { OnShimLost(how); }});
  } else {
    no_shim_ = shim.status();
  }
  loop_.At(Clock::now() + kLaunchPatience, [this] {
    if (!plan_.has_value()) LoseDriver("no launch came");
  });
}

// ---- from other threads ----

void Daemon::Receive(v1::Command command) {
  loop_.Post([this, command = std::move(command)] { Handle(command); });
}

void Daemon::DriverGone(std::string why) {
  loop_.Post([this, why = std::move(why)] { LoseDriver(why); });
}

void Daemon::Echoed(TimePoint sent) {
  if (lease_.has_value()) lease_->Renew(sent);
}

void Daemon::Leave(std::string why) {
  loop_.Post([this, why = std::move(why)] {
    if (std::exchange(leaving_, true)) return LoseDriver(why);
    // Not when every rank has ended: then nobody loses anything.
    const bool needed = !plan_.has_value() || ends_told_ < plan_->local_size;
    needed ? FailLaunch(125, why) : Notify(why);
    if (plan_.has_value() && !stopped_told_) BeginStop(false, why);
    MaybeExit();
  });
}

void Daemon::Run() {
  loop_.Run();
  if (supervisor_ != nullptr) supervisor_->End();
  if (relay_ != nullptr) relay_->FinishFiles(Clock::now() + kFilePatience);
}

// ---- commands ----

void Daemon::Handle(const v1::Command& command) {
  switch (command.kind_case()) {
    case v1::Command::kLaunch:
      return Launch(command.launch());
    case v1::Command::kEpochTable:
      if (links_ != nullptr) links_->TableCame(command.epoch_table());
      return;
    case v1::Command::kEpochGo:
      if (links_ != nullptr) links_->GoCame(command.epoch_go().epoch());
      return;
    case v1::Command::kEpochAbort:
      if (links_ == nullptr) return;
      return links_->Abort(command.epoch_abort().epoch(), command.epoch_abort().cause());
    case v1::Command::kSignal:
      if (!plan_.has_value() || supervisor_ == nullptr) return;
      for (int rank = 0; rank < plan_->local_size; ++rank) {
        supervisor_->Signal(rank, command.signal().signal());
      }
      return;
    case v1::Command::kStop:
      return BeginStop(command.stop().kill(), command.stop().cause());
    case v1::Command::kStdinChunk:
      if (relay_ == nullptr) return;
      return relay_->FeedStdin(command.stdin_chunk().data(), command.stdin_chunk().end());
    case v1::Command::kSetTimeline:
      if (links_ != nullptr) links_->SetTimeline(command.set_timeline());
      return;
    case v1::Command::kAskPending:
      if (links_ != nullptr) links_->AskPending();
      return;
    case v1::Command::KIND_NOT_SET:
      return;
  }
}

// ---- what the shim says ----

void Daemon::OnReport(const ShimReport& report) {
  switch (report.tell) {
    case ShimTell::kStarted:
      return OnStarted(report.rank, report.pid);
    case ShimTell::kSpawnFailed: {
      const std::string text = absl::StrCat(plan_->host_name, ": ", report.text);
      if (!std::exchange(launch_failed_, true)) FailLaunch(report.status, text);
      table_->NeverStarted(report.rank, report.status, text);
      return OnEnded(report.rank, "never started");
    }
    case ShimTell::kExited: {
      const bool killed = WIFSIGNALED(report.status) && WTERMSIG(report.status) == SIGKILL;
      const bool by_us = stop_.has_value() && stop_->begun();
      table_->Exited(report.rank, report.status, killed && !by_us && oom_->StruckSince());
      return OnEnded(report.rank, DescribeEnd(report.status));
    }
    case ShimTell::kEmpty:
      return NoteEmpty();
    case ShimTell::kSurvivors:
      return FinishStop(report.status);
    case ShimTell::kReady:
    case ShimTell::kFailed:
      return;  // said once, at the start
  }
}

void Daemon::OnStarted(int rank, int pid) {
  table_->Started(rank, pid);
  pids_[rank] = pid;
  links_->RankStarted(rank, pid);
  v1::Event event;
  event.mutable_rank_started()->set_rank(plan_->first_rank + rank);
  event.mutable_rank_started()->set_pid(pid);
  Emit(std::move(event));
}

// Link B first: it aborts the epoch at once. The rest of the rank's end comes from it and the
// relay.
void Daemon::OnEnded(int rank, const std::string& how) {
  links_->RankEnded(rank, how, [this, rank](const LinkFacts& facts) {
    loop_.Post([this, rank, facts] {
      table_->LinkSpoke(rank, facts);
      TellEnd(rank);
    });
  });
  relay_->RankGone(rank);
}

void Daemon::TellEnd(int rank) {
  const std::optional<RankEnd> end = table_->TakeEnd(rank);
  if (!end.has_value()) return;
  v1::Event event;
  v1::RankExited& exited = *event.mutable_rank_exited();
  exited.set_rank(plan_->first_rank + rank);
  exited.set_pid(end->pid);
  exited.set_exit_code(end->exit_code);
  exited.set_signal(end->signal);
  exited.set_core_dumped(end->core_dumped);
  exited.set_out_of_memory(end->out_of_memory);
  // The kernel ends ranks before hvdd hears of the end of the shim that takes them along.
  exited.set_after_abort(end->link.after_abort || shim_lost_);
  exited.set_aborted(end->link.aborted.cause);
  if (end->link.aborted.leaver >= 0) exited.set_leaver(end->link.aborted.leaver);
  for (const std::string& line : end->last_lines) exited.add_last_lines(line);
  exited.set_activity(end->link.activity);
  exited.set_joined(end->link.joined);
  exited.set_left(end->link.left);
  exited.set_exec_error(end->exec_error);
  const RankTotals& counts = end->link.counts;
  exited.mutable_counts()->set_calls(counts.all_calls());
  exited.mutable_counts()->set_bytes(counts.all_bytes());
  exited.mutable_counts()->set_wait_ns(counts.wait_ns);
  exited.mutable_counts()->set_came_last(counts.came_last);
  exited.mutable_counts()->set_json(MetricsJson(counts));
  Emit(std::move(event));
  ++ends_told_;
  MaybeFinish();
}

void Daemon::OnShimLost(const std::string& how) {
  shim_lost_ = true;
  no_shim_ = absl::UnavailableError(absl::StrCat("the shim that holds the workers ", how));
  if (!plan_.has_value()) return MaybeExit();
  const std::string cause =
      absl::StrCat(plan_->host_name, ": ", no_shim_.message(), "; its workers are ended");
  links_->Stop(cause);
  FailLaunch(125, cause);
  const int left = supervisor_->Sweep(mark());
  for (int rank = 0; rank < plan_->local_size; ++rank) {
    if (table_->ended(rank)) continue;
    table_->Exited(rank, SIGKILL, false);  // by the kernel or by the sweep
    OnEnded(rank, "ended with its shim");
  }
  if (!stop_.has_value()) stop_.emplace(grace_);
  stop_->Begin(Clock::now(), true);
  stop_->Emptied();
  FinishStop(left);
}

// ---- stopping ----

void Daemon::BeginStop(bool kill, const std::string& cause) {
  if (!stop_.has_value()) stop_.emplace(grace_);
  if (links_ != nullptr) links_->Stop(cause);
  Do(stop_->Begin(Clock::now(), kill));
  if (supervisor_ != nullptr && !shim_lost_) {
    // Awake and stopping: the shim leaves the grace to this process.
    const auto grace = std::chrono::duration_cast<Clock::duration>(grace_);
    lease_->FixForShim(Clock::now() + grace + std::chrono::seconds(2));
    supervisor_->LeaseChanged();
  }
  if (empty_) Do(stop_->Emptied());
}

void Daemon::Do(StopPlan::Do what) {
  switch (what) {
    case StopPlan::Do::kNothing:
      return;
    case StopPlan::Do::kTermAll:
      for (int rank = 0; plan_.has_value() && rank < plan_->local_size; ++rank) {
        if (!table_->ended(rank)) supervisor_->Term(rank);
      }
      if (supervisor_ != nullptr) supervisor_->TermLeftovers();
      return ArmStop();
    case StopPlan::Do::kKillAll:
      if (supervisor_ != nullptr) supervisor_->KillAll();
      return ArmStop();
    case StopPlan::Do::kCount:
      return supervisor_ != nullptr ? supervisor_->CountAll() : FinishStop(0);
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
  for (int rank = 0; plan_.has_value() && rank < plan_->local_size; ++rank) {
    if (!table_->ended(rank)) return;
  }
  empty_ = true;
  if (stop_.has_value()) Do(stop_->Emptied());
}

void Daemon::FinishStop(int survivors) {
  loop_.Cancel(stop_timer_);
  if (!survivors_.has_value()) survivors_ = survivors;
  MaybeFinish();
}

// Stopped is the last word, after every rank's end; what cannot be killed is not waited for.
void Daemon::MaybeFinish() {
  if (!survivors_.has_value() || stopped_told_) return;
  if (plan_.has_value() && table_.has_value() && *survivors_ == 0 &&
      ends_told_ < plan_->local_size) {
    return;
  }
  stopped_told_ = true;
  v1::Event event;
  event.mutable_stopped()->set_survivors(*survivors_);
  Emit(std::move(event));
  MaybeExit();
}

// ---- the driver ----

void Daemon::BeginLease(std::chrono::duration<double> length) {
  lease_->Begin(Lease(Clock::now(), length));
  supervisor_->LeaseChanged();
  WatchLease();
}

// Beats renew it on their own thread; it is looked at when it would have ended.
void Daemon::WatchLease() {
  const TimePoint until = lease_->until();
  if (until <= Clock::now()) {
    return LoseDriver("hvdrun has not been heard for the length of the lease");
  }
  loop_.At(until, [this] { WatchLease(); });
}

void Daemon::LoseDriver(const std::string& why) {
  if (std::exchange(driver_gone_, true)) return;
  if (plan_.has_value() && !stopped_told_) BeginStop(false, why);
  MaybeExit();
}

void Daemon::MaybeExit() {
  if (plan_.has_value() && !stopped_told_) return;
  if (driver_gone_) return loop_.Quit();
  if (leaving_) loop_.At(Clock::now() + kLeavePatience, [this] { loop_.Quit(); });
}

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

std::string Daemon::mark() const { return "HVD_JOB_MARK=" + job_; }

}  // namespace hvd
