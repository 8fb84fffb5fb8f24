// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/driver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_limit.h"
#include "base/printable.h"
#include "cli/driver/loop.h"
#include "cli/driver/want.h"
#include "cli/link/term_signal.h"
#include "cli/report/job_report.h"
#include "cli/report/job_summary.h"
#include "cli/report/verdict_text.h"

namespace hvd {
namespace {

constexpr double kLongestLookS = 5;
constexpr double kAfterPauseS = 1;
constexpr double kReportS = 2;  // for job.json; the verdict comes after it

}  // namespace

void Driver::Watch(int fd, uint32_t events, DriverSource source, int host) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = (static_cast<uint64_t>(source) << 32) | static_cast<uint32_t>(host);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

void Driver::Run() {
  Watch(console_.fd(), EPOLLIN, DriverSource::kConsole);
  Watch(spawner_.get(), EPOLLIN, DriverSource::kSpawner);
  Watch(links_.event_fd(), EPOLLIN, DriverSource::kLinks);
  if (setup_.term.valid()) Watch(setup_.term.get(), EPOLLIN, DriverSource::kTerm);
  if (!options_.timeline_path.empty()) BeginTimeline(options_.timeline_path);
  while (!state_.finished()) {
    Turn();
    CarryOut();
  }
  WaitForTimeline();
  Finish();
}

double Driver::NextDeadline() const {
  double next = std::min({state_.deadline(), next_look_, give_up_at_, timeline_.deadline(),
                          status_at_, store_.deadline(), discovery_.deadline()});
  for (const HostPort& port : ports_) {
    if (port.restart_at > 0) next = std::min(next, port.restart_at);
  }
  return next;
}

void Driver::Turn() {
  const double left = std::max(0.0, NextDeadline() - MonotonicSeconds());
  epoll_event events[32];
  const int timeout = static_cast<int>(std::ceil(std::min(left, 3600.0) * 1000));
  const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout);
  NotePause(left);
  for (int i = 0; i < count; ++i) {
    const auto source = static_cast<DriverSource>(events[i].data.u64 >> 32);
    const int host = static_cast<int>(events[i].data.u64 & 0xffffffff);
    switch (source) {
      case DriverSource::kConsole:
        SendConsole();
        if (events[i].events & ~EPOLLOUT) TakeConsole();
        break;
      case DriverSource::kSpawner:
        TakeSpawner();
        break;
      case DriverSource::kLinks:
        TakeArrivals();
        break;
      case DriverSource::kHello:
        OnHello(host);
        break;
      case DriverSource::kErrors:
        OnErrors(host);
        break;
      case DriverSource::kTimeline:
        break;  // TickClocks looks
      case DriverSource::kTerm:
        if (TermHasCome(setup_.term)) TermOfHelper();
        break;
    }
  }
  TickClocks();
}

void Driver::TermOfHelper() {
  const double now = MonotonicSeconds();
  if (terms_.ByHelper(now)) state_.Signalled(SIGTERM, now);
}

// The loop should have been awake `meant` seconds after its last turn, at the latest.
void Driver::NotePause(double meant) {
  const double now = MonotonicSeconds();
  const double late = now - std::exchange(turned_at_, now) - meant;
  if (late < options_.lease_s / 2) return;
  state_.Paused(late, now);
  // The messages that the hosts have sent meanwhile come first.
  next_look_ = now + kAfterPauseS;
}

void Driver::TickClocks() {
  const double now = MonotonicSeconds();
  links_.Turned(now);
  LookAtTimeline(now);
  links_.TellOfBeats(timeline_.on());
  if (now >= next_look_) LookAtLeases(now);
  for (size_t host = 0; host < ports_.size(); ++host) {
    if (ports_[host].restart_at == 0 || now < ports_[host].restart_at) continue;
    ports_[host].restart_at = 0;
    if (state_.starting()) AskSpawner(FrameKind::kStart, host);
  }
  if (now >= state_.deadline()) state_.Tick(now);
  if (now >= store_.deadline()) store_.Tick(now);
  if (state_.ending()) discovery_.Stop();
  if (now >= discovery_.deadline()) discovery_.Tick(now);
}

// The beats go and come without us; seldom looking is enough, as no lease ends before its deadline.
void Driver::LookAtLeases(double now) {
  TakeArrivals();  // what has come already may prove life
  next_look_ = now + std::min(options_.lease_s / 4, kLongestLookS);
  for (size_t host = 0; host < ports_.size(); ++host) {
    if (state_.facts().hosts[host].phase == HostFact::kGone) continue;
    if (now < links_.deadline(host)) {
      next_look_ = std::min(next_look_, links_.deadline(host));
      continue;
    }
    links_.GiveUp(host);
    state_.HostLost(host,
                    absl::StrFormat("no sign of life for %.1f s (--lease %g s): machine, network "
                                    "or remote shell is stuck",
                                    now - links_.proven(host), options_.lease_s),
                    now);
    state_.HostDetail(host, {"its ranks end with the lease", ""}, now);
    AskSpawner(FrameKind::kKill, host);  // it may be stopped, and would outlive us
  }
}

// Does what the state table wants, until it wants nothing more.
void Driver::CarryOut() {
  for (auto wanted = state_.TakeActions(); !wanted.empty(); wanted = state_.TakeActions()) {
    for (const Action& action : wanted) Do(action);
  }
  if (state_.facts().epochs.size() != epochs_told_) {
    epochs_told_ = state_.facts().epochs.size();
    timeline_.BeginEpoch({state_.facts().epochs.back().number, state_.facts().topology,
                          state_.members().hosts(),
                          static_cast<int64_t>(MonotonicSeconds() * 1e9)});
  }
  if (state_.ending() && !std::exchange(ending_told_, true)) {
    Frame ending;
    ending.kind = FrameKind::kEnding;
    console_.Put(std::move(ending));
    SendConsole();
  }
  const bool paused = console_.is_slow();
  state_.OutputPaused(paused, MonotonicSeconds());
  if (!paused) Acknowledge();
  TellStatus(MonotonicSeconds());
}

void Driver::Do(const Action& action) {
  switch (action.kind) {
    case Action::kPrepare:
      return Prepare(action.host);
    case Action::kReach:
      return ReachHost(action.target);
    case Action::kDrop:
      return DropHost(action.host);
    case Action::kSend:
      for (size_t host = 0; host < ports_.size(); ++host) {
        const bool meant = action.host == kAllHosts || action.host == static_cast<int>(host);
        if (meant) links_.Send(host, action.command);
      }
      if (options_.elastic && action.command.has_spawn_slots()) GiveStdinRoom();
      return;
    case Action::kSay:
      return Say(action.text);
    case Action::kOverdue:
      return ReportOverdue(action.host);
  }
}

void Driver::Prepare(int meant) {
  if (!std::exchange(launched_, true)) stdin_hosts_ = ports_.size();
  for (int host = 0; host < static_cast<int>(ports_.size()); ++host) {
    if (meant != kAllHosts && meant != host) continue;
    v1::Command command;
    *command.mutable_prepare_host() =
        MakePrepare(options_, setup_.secrets, setup_.limits,
                    {host, HostName(host), state_.facts().hosts[host].ranks});
    links_.Send(host, command);
    if (skips_ != 0) SendSkips(host);
  }
  GiveStdinRoom();
}

void Driver::ReportOverdue(int host) {
  HostFact fault;
  if (const StartFailure& awaited = ports_[host].awaited; !awaited.cause.empty()) {
    fault.cause =
        absl::StrFormat("%s, for --start-timeout %g s", awaited.cause, options_.start_timeout_s);
    fault.remedy = awaited.remedy;
    return NotStarted(host, std::move(fault));
  }
  fault.cause =
      absl::StrFormat("no word from hvdd within --start-timeout %g s", options_.start_timeout_s);
  fault.remedy = ShellName(options_, targets_[host]).empty()
                     ? "give it longer (--start-timeout), or find what holds this machine up"
                     : absl::StrCat("does a login work, and does it end quickly? ",
                                    Printable(LoginCommand(options_, targets_[host])), " true");
  NotStarted(host, std::move(fault));
}

// The verdict, and job.json. Once more when output is lost after it.
Frame Driver::Report() {
  const JobFacts& facts = state_.facts();
  if (!options_.output_directory.empty() && !report_lost_) {
    const absl::Status written = WriteJobReportWithin(kReportS, options_.output_directory,
                                                      RenderJobReport(facts, Judge(facts)));
    report_lost_ = !written.ok();
    if (report_lost_) {
      auto& lost = state_.mutable_facts()->lost_files;
      lost.insert(lost.begin(), absl::StrCat("job.json: ", std::string(written.message())));
    }
  }
  const Verdict verdict = Judge(facts);
  Frame final;
  final.kind = FrameKind::kFinal;
  final.number = verdict.exit_code;
  final.text = RenderVerdict(facts, verdict);
  return final;
}

// Until the console has written what it got, or given it up. It may be stopped for hours.
void Driver::Drain() {
  Frame drain;
  drain.kind = FrameKind::kDrain;
  console_.PutInOrder(std::move(drain));
  for (SendConsole(); !drained_ && console_.fd() >= 0; SendConsole()) {
    pollfd wait = {console_.fd(), POLLIN, 0};
    if (console_.wants_room()) wait.events |= POLLOUT;
    poll(&wait, 1, -1);
    TakeConsole();
  }
}

// The verdict, then nothing: whatever is left ends with our descriptors.
void Driver::Finish() {
  CarryOut();
  EndLogins();
  ExplainLinks();
  const JobFacts& facts = state_.facts();
  const std::string summary = options_.verbose > 0 ? RenderSummary(facts) : "";
  if (!summary.empty()) console_.PutInOrder(NoticeOf(summary));
  const size_t known_losses = facts.lost_output.size();
  Frame final = Report();
  if (facts.ending == Ending::kOutputGone) console_.ForgetOutput();
  Drain();
  if (facts.lost_output.size() > known_losses) final = Report();
  console_.Put(std::move(final));
  for (SendConsole(); !console_.empty(); SendConsole()) {
    pollfd wait = {console_.fd(), POLLOUT, 0};
    poll(&wait, 1, -1);
  }
}

void RunDriver(DriverSetup setup) {
  RaiseFileLimit();
  EndInWordsForWant(setup.console.get());
  Driver driver(std::move(setup));
  driver.Run();
  _exit(0);
}

}  // namespace hvd
