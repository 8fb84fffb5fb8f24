// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/daemon.h"

#include <sys/wait.h>

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/process_end.h"
#include "proto/deadlines.h"

namespace hvd {

Daemon::Daemon(absl::StatusOr<ShimProcess> shim, std::function<void(v1::Event)> emit,
               Clock::duration launch_patience)
    : emit_(std::move(emit)), launch_patience_(launch_patience) {
  loop_.ContinueWhenDue(kStoppedDaemonMargin);
  if (shim.ok()) {
    lease_.emplace(shim->lease.get());
    supervisor_ = std::make_unique<Supervisor>(
        *std::move(shim), &loop_,
        Supervisor::Handlers{[this](const ShimReport& report) { OnReport(report); },
                             [this](const std::string& how) { OnShimLost(how); }});
  } else {
    no_shim_ = shim.status();
  }
  AwaitLaunch();
}

// A driver that is there may wait for its other hosts for as long as its --start-timeout says.
void Daemon::AwaitLaunch() {
  if (prepared_.has_value()) return;
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

void Daemon::Run() {
  loop_.Run();
  if (supervisor_ != nullptr) supervisor_->End();
  if (relay_ != nullptr) relay_->FinishFiles(Clock::now() + kLastFilePatience);
}

// ---- commands ----

void Daemon::Handle(const v1::Command& command) {
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
      if (links_ != nullptr) links_->Change(command.epoch_change());
      return;
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
      return SignalRanks(command.signal().signal());
    case v1::Command::kStop:
      return BeginStop(command.stop());
    case v1::Command::kStdinChunk:
      if (relay_ == nullptr) return;
      return relay_->FeedStdin(command.stdin_chunk().data(), command.stdin_chunk().end());
    case v1::Command::kSetTimeline:
      if (links_ != nullptr) links_->SetTimeline(command.set_timeline());
      return;
    case v1::Command::kSkipOutput:
      if (relay_ == nullptr) return;
      return relay_->SetSkipping(command.skip_output().out(), command.skip_output().err());
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
      return OnStarted(report.slot, report.pid);
    case ShimTell::kSpawnFailed: {
      const std::string text = absl::StrCat(prepared_->name(), ": ", report.text);
      // In an elastic job it is that member's end, unless the host has never started any.
      if (!(elastic() && any_started_) && !std::exchange(launch_failed_, true)) {
        FailLaunch(report.status, text);
      }
      table_->NeverStarted(report.slot, report.status, text);
      return OnEnded(
          {.slot = report.slot, .status = W_EXITCODE(report.status, 0), .never_started = true});
    }
    case ShimTell::kExited: {
      if (report.text[0] != 0)
        Notify(absl::StrCat("rank in slot ", report.slot, ": ", report.text));
      const bool killed = WIFSIGNALED(report.status) && WTERMSIG(report.status) == SIGKILL;
      const bool by_us = stop_.has_value() && stop_->begun();
      const bool out_of_memory = killed && !by_us && oom_->StruckSince();
      table_->Exited(report.slot, report.status, out_of_memory);
      return OnEnded(
          {.slot = report.slot, .status = report.status, .out_of_memory = out_of_memory});
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

void Daemon::OnStarted(int slot, int pid) {
  any_started_ = true;
  table_->Started(slot, pid);
  links_->MemberStarted(slot, pid);
  v1::Event event;
  event.mutable_rank_started()->set_member(members_[slot]);
  event.mutable_rank_started()->set_pid(pid);
  Emit(std::move(event));
}

// Link B first: it aborts the epoch at once, and the driver is told at once. The rest of the rank's
// end comes from link B and the relay.
void Daemon::OnEnded(const ProcessEnd& end) {
  ended_[end.slot] = Clock::now();
  const std::string how = end.never_started ? "never started"
                          : end.with_shim   ? "ended with its shim"
                                            : DescribeEnd(end.status);
  const bool told = !end.never_started || elastic();
  const bool well = !end.never_started && !end.with_shim && end.status == 0;
  links_->MemberEnded({end.slot, how, well}, [this, end, told](const LinkFacts& facts) {
    if (told) TellDied(end, facts);
    loop_.Post([this, slot = end.slot, facts] {
      table_->LinkSpoke(slot, facts);
      TellEnd(slot);
    });
  });
  relay_->RankGone(end.slot);
}

// On the links thread: a loop that is busy must not hold up what other hosts wait for.
void Daemon::TellDied(const ProcessEnd& end, const LinkFacts& facts) {
  v1::Event event;
  v1::MemberDied& died = *event.mutable_member_died();
  died.set_member(members_[end.slot]);
  if (WIFSIGNALED(end.status)) {
    died.set_signal(WTERMSIG(end.status));
    died.set_core_dumped(WCOREDUMP(end.status));
  } else {
    died.set_exit_code(WEXITSTATUS(end.status));
  }
  died.set_out_of_memory(end.out_of_memory);
  died.set_epoch(facts.epoch);
  died.set_left(facts.left);
  died.set_after_abort(facts.after_abort || end.with_shim);
  died.set_aborted(facts.aborted.cause);
  died.set_cause(facts.cause);
  died.set_spoken_for(facts.spoken_for);
  died.set_commit(facts.kept.newest);
  died.set_steps(facts.kept.steps);
  died.set_place(facts.kept.place);
  Emit(std::move(event));
}

void Daemon::TellEnd(int slot) {
  const std::optional<RankEnd> end = table_->TakeEnd(slot);
  if (!end.has_value()) return;
  v1::Event event;
  v1::RankExited& exited = *event.mutable_rank_exited();
  exited.set_member(members_[slot]);
  exited.set_pid(end->pid);
  exited.set_exit_code(end->exit_code);
  exited.set_signal(end->signal);
  exited.set_core_dumped(end->core_dumped);
  exited.set_out_of_memory(end->out_of_memory);
  // The kernel ends ranks before hvdd hears of the end of the shim that takes them along.
  exited.set_after_abort(end->link.after_abort || shim_lost_);
  exited.set_aborted(end->link.aborted.cause);
  if (end->link.aborted.rank >= 0) exited.set_abort_rank(end->link.aborted.rank);
  if (end->link.aborted.unreached >= 0) exited.set_unreached(end->link.aborted.unreached);
  for (const std::string& line : end->last_lines) exited.add_last_lines(line);
  exited.set_activity(end->link.activity);
  exited.set_joined(end->link.joined);
  exited.set_left(end->link.left);
  exited.set_refused(end->link.refused);
  exited.set_exec_error(end->exec_error);
  exited.set_told_after_us(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - ended_[slot]).count());
  const RankTotals& counts = end->link.counts;
  exited.mutable_counts()->set_calls(counts.all_calls());
  exited.mutable_counts()->set_bytes(counts.all_bytes());
  exited.mutable_counts()->set_wait_ns(counts.wait_ns);
  exited.mutable_counts()->set_came_last(counts.came_last);
  exited.mutable_counts()->set_json(RenderJson(MetricsJson(counts)));
  Emit(std::move(event));
  ++ends_told_;
  MaybeFinish();
}

// ---- to the driver ----

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

std::string Daemon::mark() const { return "HVD_JOB_MARK=" + prepared_->job(); }

}  // namespace hvd
