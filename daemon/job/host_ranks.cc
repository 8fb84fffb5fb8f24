// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/host_ranks.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/job/end_words.h"
#include "daemon/job/launch_words.h"
#include "daemon/job/rank_outfit.h"
#include "proto/exit_code.h"

namespace hvd::daemon {
namespace {

constexpr Clock::duration kTellAwaitedAfter = std::chrono::seconds(15);

}  // namespace

HostRanks::HostRanks(HostJob job, HostRanksParts parts)
    : job_(std::move(job)), parts_(std::move(parts)) {
  StartRelay();  // before the links: they use its queue
  StartLinks();
}

void HostRanks::StartLinks() {
  const v1::PrepareHost& prepared = job_.prepared();
  LinkServerOptions options;
  options.host_name = prepared.name();
  options.slots = job_.slots();
  options.elastic = prepared.elastic();
  options.job = prepared.job();
  options.epoch_secret = prepared.epoch_secret();
  const int listener = parts_.supervisor->shim().listener.get();
  if (listener >= 0) options.listener.Reset(fcntl(listener, F_DUPFD_CLOEXEC, 3));
  options.on_event = parts_.emit;
  options.store = parts_.store;
  options.timeline = prepared.timeline();
  options.stall = {prepared.stall_warn_s(), prepared.stall_abort_s()};
  OutputQueue* const output = parts_.output;
  const int stream = OutputQueue::TimelineStream(job_.slots());
  options.trace.room = [output, stream] { return output->Room(stream); };
  options.trace.on_trace = [output, stream](const std::string& frames) {
    output->Push(stream, frames);
  };
  options.trace.on_off = [output, stream] { output->EndRecording(stream); };
  options.trace.on_end = [output, stream] { output->PushEnd(stream); };
  links_ = std::make_unique<LinkServer>(std::move(options));
}

void HostRanks::StartRelay() {
  RelayOptions options;
  options.slots = job_.slots();
  options.elastic = job_.elastic();
  options.to_console = job_.prepared().output_to_console();
  options.directory = job_.prepared().output_directory();
  options.on_drained = [this](int slot, std::vector<std::string> lines) {
    parts_.loop->Post([this, slot, lines = std::move(lines)] {
      job_.Drained(slot, lines);
      TellEnd(slot);
    });
  };
  options.on_stdin_credit = [this](uint64_t bytes) {
    v1::Event event;
    event.mutable_stdin_credit()->set_bytes(bytes);
    parts_.emit(std::move(event));
  };
  options.on_files_ended = [this] { parts_.loop->Post([this] { parts_.on_told(); }); };
  options.on_notice = [this](std::string text) { Notify(std::move(text)); };
  relay_ = std::make_unique<Relay>(std::move(options), parts_.output);
}

void HostRanks::Propose(const v1::EpochPropose& propose) {
  absl::StatusOr<EpochPlan> plan = job_.Propose(propose);
  if (!plan.ok()) return FailLaunch(kExitLauncher, std::string(plan.status().message()));
  if (plan->host < 0) return;
  for (const int slot : plan->slots) {
    if (job_.elastic()) relay_->Renumber(slot, plan->RankIn(slot));
  }
  links_->Propose(*std::move(plan));
}

// ---- how they are started ----

// All in one turn of the loop: nobody's end is heard before all have been started.
void HostRanks::Spawn(const v1::SpawnSlots& asked) {
  v1::SpawnSlots spawn = asked;
  absl::Status placed;
  if (job_.elastic()) {
    placed = job_.Place(asked);
    Seating seating = job_.SeatAll(asked);
    RefuseSeats(seating, placed);
    spawn = std::move(seating.seated);
  }
  for (const v1::Seat& seat : spawn.seats()) {
    if (job_.MayTake(seat)) continue;
    return FailLaunch(kExitLauncher, absl::StrCat(job_.name(), ": slot ", seat.slot(),
                                                  " is no free place for member ", seat.member(),
                                                  " of an epoch that has been proposed"));
  }
  for (const v1::Seat& seat : spawn.seats()) {
    job_.Take(seat);
    relay_->Begin(static_cast<int>(seat.slot()), seat.member());
  }
  links_->Expect(spawn);
  if (!placed.ok()) return NeverStart(spawn, 0, std::string(placed.message()));
  if (shim_lost_ || stopping_) return NeverStart(spawn, 0, "the job is being stopped");
  StartAll(spawn);
}

void HostRanks::RefuseSeats(const Seating& seating, const absl::Status& placed) {
  for (const v1::Seat& seat : seating.refused) {
    const std::string why = absl::StrCat(job_.name(), ": slot ", seat.slot(), " and share ",
                                         seat.share(), " are no free place for member ",
                                         seat.member(), placed.ok() ? "" : ": ", placed.message());
    for (v1::Event& event : RefusedEvents(seat.member(), why)) parts_.emit(std::move(event));
  }
}

void HostRanks::StartAll(const v1::SpawnSlots& spawn) {
  if (!std::exchange(launched_told_, true)) TellLaunched();
  for (int i = 0; i < spawn.seats_size(); ++i) {
    absl::Status started = StartRank(spawn.seats(i));
    if (started.ok()) continue;
    const std::string why(started.message());
    if (job_.elastic()) {
      v1::SpawnSlots one;
      *one.add_seats() = spawn.seats(i);
      NeverStart(one, 0, why);
      continue;
    }
    NeverStart(spawn, i, why);
    FailLaunch(kExitLauncher, absl::StrCat(job_.name(), ": ", why));
    return parts_.on_broken(why);
  }
  if (job_.prepared().adoption_key().empty()) return;
  parts_.loop->At(Clock::now() + kTellAwaitedAfter, [this] {
    const std::string note = AwaitedNote(job_);
    if (!note.empty() && !stopping_) Notify(note);
  });
}

absl::Status HostRanks::StartRank(const v1::Seat& seat) {
  const int slot = static_cast<int>(seat.slot());
  absl::StatusOr<RankOutfit> made = OutfitFor(seat, job_, parts_.supervisor->shim().way_back);
  if (!made.ok()) return made.status();
  RankOutfit& outfit = *made;
  links_->AddDoor(slot, std::move(outfit.door_here), std::move(outfit.token));
  // A worker that comes after the first epoch may follow one of its rank that was on another host.
  const bool follows = job_.context().plan.epoch > 1;
  relay_->Adopt(slot, {job_.RankOf(slot), std::move(outfit.in.write_end),
                       std::move(outfit.out.read_end), std::move(outfit.err.read_end), follows});
  empty_ = false;
  parts_.supervisor->Spawn(
      slot, {outfit.order.get(), outfit.in.read_end.get(), outfit.out.write_end.get(),
             outfit.err.write_end.get(), outfit.door_there.get()});
  return absl::OkStatus();
}

// The table must close: those that were never asked for end here.
void HostRanks::NeverStart(const v1::SpawnSlots& spawn, int first, const std::string& why) {
  for (int i = first; i < spawn.seats_size(); ++i) {
    RankDeath end;
    end.slot = static_cast<int>(spawn.seats(i).slot());
    end.status = W_EXITCODE(kExitLauncher, 0);
    end.never_started = true;
    end.exec_error = why;
    OnEnded(std::move(end));
  }
}

void HostRanks::TellLaunched() {
  const ShimProcess& shim = parts_.supervisor->shim();
  parts_.emit(LaunchedEvent(job_, shim.level));
  for (std::string& note : LaunchNotes(job_, shim)) Notify(std::move(note));
}

void HostRanks::FailLaunch(int exit_code, const std::string& message) {
  parts_.emit(LaunchFailedEvent(exit_code, message));
}

// ---- how they end ----

void HostRanks::OnStarted(int slot, int pid) {
  job_.Started(slot, pid);
  links_->MemberStarted(slot, pid);
  v1::Event event;
  event.mutable_rank_started()->set_member(job_.member(slot));
  event.mutable_rank_started()->set_pid(pid);
  parts_.emit(std::move(event));
}

void HostRanks::OnSpawnFailed(const ShimReport& report) {
  RankDeath end;
  end.slot = report.slot;
  end.status = W_EXITCODE(report.status, 0);
  end.never_started = true;
  end.exec_error = absl::StrCat(job_.name(), ": ", report.text);
  if (job_.FailsLaunch()) FailLaunch(report.status, end.exec_error);
  OnEnded(std::move(end));
}

void HostRanks::OnExited(const ShimReport& report) {
  if (report.text[0] != 0) Notify(absl::StrCat("rank in slot ", report.slot, ": ", report.text));
  const bool killed = WIFSIGNALED(report.status) && WTERMSIG(report.status) == SIGKILL;
  RankDeath end;
  end.slot = report.slot;
  end.status = report.status;
  end.out_of_memory = killed && !stopping_ && oom_.StruckSince();
  OnEnded(std::move(end));
}

bool HostRanks::OnEmpty() {
  empty_ |= job_.Living().empty();
  return job_.Living().empty();
}

void HostRanks::OnShimLost() {
  shim_lost_ = true;
  for (const int slot : job_.Living()) {
    RankDeath end;
    end.slot = slot;
    end.status = SIGKILL;  // by the kernel or by the sweep
    end.with_shim = true;
    OnEnded(std::move(end));
  }
  relay_->Hurry();
}

// Link B first: it aborts the epoch at once, and the driver is told at once, on the links thread: a
// loop that is busy must not hold up what other hosts wait for. The rest of the rank's end comes
// from link B and the relay.
void HostRanks::OnEnded(RankDeath end) {
  end.at = Clock::now();
  const RankDeath& known = job_.Ended(std::move(end));
  const bool told = !known.never_started || job_.elastic();
  links_->MemberEnded(known, [this, told](const RankDeath& death) {
    if (told) parts_.emit(DiedEvent(death));
    parts_.loop->Post([this, slot = death.slot, link = death.link] {
      job_.LinkSpoke(slot, link);
      TellEnd(slot);
    });
  });
  relay_->RankGone(known.slot);
}

void HostRanks::TellEnd(int slot) {
  const std::optional<RankDeath> end = job_.TakeEnd(slot);
  if (!end.has_value()) return;
  parts_.emit(ExitedEvent(*end, shim_lost_, Clock::now()));
  parts_.on_told();
}

// ---- how they are ended ----

// Ranks that wait for the worker are told first: it may use all of its grace. One that is removed
// hears of it when it asks for the next epoch, and may end by itself first.
void HostRanks::Retire(const v1::RetireSlot& retire) {
  const bool known = retire.slot() < static_cast<uint32_t>(job_.slots());
  const int slot = static_cast<int>(retire.slot());
  if (!known || job_.vacant(slot) || stopping_) return;
  const uint64_t member = job_.member(slot);
  if (job_.elastic() && retire.removed()) {
    links_->Remove(slot, retire.cause());
    parts_.loop->At(Clock::now() + grace(), [this, slot, member] { TermRetired(slot, member); });
    return;
  }
  links_->Retire(slot, retire.cause());
  TermRetired(slot, member);
}

// The slot may be another's by now.
void HostRanks::TermRetired(int slot, uint64_t member) {
  if (!job_.IsIn(slot, member) || shim_lost_) return;
  if (job_.elastic()) {  // what others have left is not to be asked to end
    parts_.supervisor->Signal(slot, SIGCONT);
    parts_.supervisor->Signal(slot, SIGTERM);
  } else {
    parts_.supervisor->Term(slot);
  }
  parts_.loop->At(Clock::now() + grace(), [this, slot, member] { KillRetired(slot, member); });
}

void HostRanks::KillRetired(int slot, uint64_t member) {
  if (job_.IsIn(slot, member) && !shim_lost_) parts_.supervisor->Signal(slot, SIGKILL);
}

Clock::duration HostRanks::grace() const {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(job_.prepared().grace_s()));
}

void HostRanks::Signal(int signal) {
  for (const int slot : job_.Living()) parts_.supervisor->Signal(slot, signal);
}

// If something has failed, the links are told before TERM: what comes then is no rank's own fault.
// Otherwise a program's handler of TERM finds its collectives alive.
void HostRanks::BeginStop(const v1::Stop& stop) {
  stopping_ = true;
  stop.may_agree() ? links_->Close(stop.cause()) : links_->Stop(stop.cause());
  relay_->Hurry();
}

void HostRanks::TermAll() {
  for (const int slot : job_.Living()) parts_.supervisor->Term(slot);
}

void HostRanks::Notify(std::string text) {
  v1::Event event;
  event.mutable_notice()->set_text(std::move(text));
  parts_.emit(std::move(event));
}

}  // namespace hvd::daemon
