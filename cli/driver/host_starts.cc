// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/host_starts.h"

#include <sys/epoll.h>
#include <sys/utsname.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/reach/agent_failure.h"
#include "cli/reach/spawner.h"
#include "cli/reach/ssh_failure.h"
#include "proto/exit_code.h"

namespace hvd::cli {
namespace {

constexpr int kMaxAttempts = 4;  // the first and three more
constexpr double kAwaitedPauseS = 0.5;
// Lines of one host's stderr. A background job of a login may print without end, and our queue for
// a slow terminal has none either.
constexpr int kMostWords = 1000;

}  // namespace

HostStarts::HostStarts(Descriptor spawner, const Parts& parts)
    : spawner_(std::move(spawner)), parts_(parts) {}

// ---- the spawner ----

void HostStarts::Begin() { parts_.poll->Watch({spawner_.get(), EPOLLIN}, DriverSource::kSpawner); }

void HostStarts::TakeSpawner() {
  while (spawner_.valid()) {
    Frame frame;
    const FrameResult result = ReceiveFrame(spawner_.get(), &frame);
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) return SpawnerLost();
    if (frame.kind == FrameKind::kLookText || frame.kind == FrameKind::kLookEnded) {
      parts_.look(frame);
      continue;
    }
    if (frame.kind == FrameKind::kSignal) parts_.console->TermOfHelper();
    const int host = static_cast<int>(frame.index);
    if (host >= parts_.hosts->count()) continue;
    if (frame.kind == FrameKind::kStarted) OnStarted(host, &frame);
    if (frame.kind == FrameKind::kExited) OnChildExited(host, static_cast<int>(frame.number));
    if (frame.kind == FrameKind::kFailed) {
      HostFact fault;
      fault.cause = absl::StrCat("hvdrun cannot start a process here: ", Printable(frame.text));
      fault.remedy = "raise this machine's limits (ulimit -n, ulimit -u)";
      NotStarted(host, std::move(fault));
    }
  }
}

void HostStarts::SpawnerLost() {
  parts_.poll->Forget(spawner_.get());
  spawner_.Reset();
  parts_.state->ProcessLost(
      Ending::kSpawnerLost,
      "its spawner process died, and with it every ssh and local daemon that it had started",
      MonotonicSeconds());
}

bool HostStarts::Ask(const Frame& frame) {
  return spawner_.valid() && SendFrame(spawner_.get(), frame) == FrameResult::kDone;
}

void HostStarts::AskSpawner(FrameKind kind, int host) {
  Frame frame;
  frame.kind = kind;
  frame.index = host;
  frame.end = !parts_.hosts->ports[host].greeted;
  // The spawner reads at once and frames are tiny: a full socket means that it is dead or stuck.
  if (spawner_.valid()) SendFrame(spawner_.get(), frame);
}

// The spawner knows the commands of those that it has started by itself.
void HostStarts::AskToStart(int host) {
  // hvdrun has seen that it can be made.
  const auto argv = DaemonArgv(*parts_.options, *parts_.start, parts_.hosts->targets[host]);
  if (!argv.ok() || !spawner_.valid()) return;
  Frame frame;
  frame.kind = FrameKind::kStart;
  frame.index = host;
  frame.text = absl::StrJoin(*argv, absl::string_view("\0", 1));
  if (frame.text.size() <= kMaxFrameText) {
    SendFrame(spawner_.get(), frame);
    return;
  }
  HostFact fault;
  fault.cause = absl::StrCat("the command to reach it has ", frame.text.size(), " bytes");
  fault.remedy = absl::StrCat("at most ", kMaxFrameText, " can be had (--rsh-agent)");
  NotStarted(host, std::move(fault));
}

// ---- starts ----

void HostStarts::NoteUnasked(int hosts) { next_start_ = std::min(hosts, kStartsAtOnce); }

// One that was lost before comes back as another number.
HostTarget HostStarts::TargetFor(const HostSlots& host) const {
  const RunOptions& options = *parts_.options;
  const auto& targets = parts_.hosts->targets;
  bool is_local = std::any_of(targets.begin(), targets.end(), [&](const HostTarget& target) {
    return target.is_local && target.host.name == host.name;
  });
  for (size_t i = 0; i < options.host_of.size(); ++i) {
    is_local |= options.host_of[i].name == host.name && options.is_local[i];
  }
  if (!is_local && options.is_local_host) is_local = options.is_local_host(host);
  return {host, is_local};
}

bool HostStarts::MayStartNext() const {
  if (!parts_.state->starting() || next_start_ >= parts_.hosts->count()) return false;
  int under_way = 0;
  for (int host = 0; host < next_start_; ++host) {
    under_way += parts_.state->facts().hosts[host].phase == HostFact::kStarting;
  }
  return under_way < kStartsAtOnce;
}

void HostStarts::StartNext() {
  while (MayStartNext()) {
    const int host = next_start_++;
    // It may have been let go meanwhile.
    if (parts_.state->facts().hosts[host].phase != HostFact::kGone) AskToStart(host);
  }
}

void HostStarts::StartAgain(double now) {
  for (int host = 0; host < parts_.hosts->count(); ++host) {
    HostPort& port = parts_.hosts->ports[host];
    if (port.restart_at == 0 || now < port.restart_at) continue;
    port.restart_at = 0;
    if (parts_.state->starting()) AskSpawner(FrameKind::kStart, host);
  }
}

double HostStarts::deadline() const {
  double next = std::numeric_limits<double>::infinity();
  for (const HostPort& port : parts_.hosts->ports) {
    if (port.restart_at > 0) next = std::min(next, port.restart_at);
  }
  return next;
}

void HostStarts::Drop(int host) {
  parts_.hosts->ports[host].restart_at = 0;
  std::erase_if(greeted_, [host](const auto& entry) { return entry.second == host; });
  if (host < next_start_) Kill(host);
  StartNext();
}

void HostStarts::EndLogins() {
  for (int host = 0; host < next_start_; ++host) {
    if (!parts_.hosts->ports[host].greeted) Kill(host);
  }
}

void HostStarts::OnStarted(int host, Frame* frame) {
  if (frame->fds.size() != 2) {  // the kernel has kept those that are too many for us
    HostFact fault;
    fault.cause = "hvdrun has too many open files";
    fault.remedy = "raise this machine's hard limit (ulimit -Hn)";
    return NotStarted(host, std::move(fault));
  }
  HostPort& port = parts_.hosts->ports[host];
  port.Begin(std::move(frame->fds[0]), std::move(frame->fds[1]));
  if (parts_.options->verbose > 0) SayCommand(host);
  // Edges: bytes that are only looked at would wake us for ever.
  parts_.poll->Watch({port.socket(), EPOLLIN | EPOLLET}, DriverSource::kHello, host);
  parts_.poll->Watch({port.errors(), EPOLLIN}, DriverSource::kErrors, host);
}

void HostStarts::SayCommand(int host) {
  std::string command = ShortCommand(*parts_.options, parts_.hosts->targets[host]);
  if (parts_.options->verbose > 1) {
    const auto argv = DaemonArgv(*parts_.options, *parts_.start, parts_.hosts->targets[host]);
    if (argv.ok()) command = absl::StrJoin(*argv, " ");
  }
  parts_.console->Say(absl::StrCat("host ", parts_.hosts->Name(host), ": ", Printable(command)));
}

// ---- their first words ----

void HostStarts::OnHello(int host) {
  HostPort& port = parts_.hosts->ports[host];
  if (port.greeted || port.socket() < 0) return;
  Greeting greeting = port.Greet(parts_.start->marker, parts_.hosts->Name(host));
  if (greeting.state == Greeting::kWaiting) return;
  if (greeting.state == Greeting::kWrong) {
    HostFact fault;
    fault.cause = std::move(greeting.cause);
    fault.remedy = std::move(greeting.remedy);
    return NotStarted(host, std::move(fault));
  }
  parts_.poll->Forget(port.socket());
  const std::string& identity = port.identity();
  if (!identity.empty() && !greeted_.emplace(identity, host).second) {
    return RefuseTwin(host, greeted_[identity]);
  }
  port.greeted = true;
  // ssh and a daemon of this machine lose no time.
  if (!parts_.options->rsh_agent.empty()) AskSpawner(FrameKind::kHasten, host);
  parts_.links->Open({host, port.TakeSocket(), !parts_.hosts->targets[host].is_local});
  if (parts_.options->verbose > 0 && !port.noise().empty()) {
    parts_.console->Say(absl::StrCat("host ", parts_.hosts->Name(host), ": noise at login:\n",
                                     QuoteLines(port.noise(), 12)));
  }
  parts_.state->HostGreeted(host, MonotonicSeconds());
  StartNext();
}

// Its ranks would be given the same cores and local ranks twice.
void HostStarts::RefuseTwin(int host, int twin) {
  const auto& hosts = parts_.state->facts().hosts;
  HostFact fault;
  fault.cause = absl::StrCat("it is the same host as ", parts_.hosts->Name(twin));
  fault.remedy = absl::StrCat("name it once, with the slots of both: ", parts_.hosts->Name(twin),
                              ":", hosts[twin].ranks + hosts[host].ranks);
  NotStarted(host, std::move(fault));
}

void HostStarts::OnErrors(int host) {
  HostPort& port = parts_.hosts->ports[host];
  if (port.errors() < 0) return;
  const std::string lines = port.TakeErrors();
  const std::string stop = FindManagerStop(lines);
  if (!stop.empty() && !parts_.options->elastic)
    parts_.state->ManagerStops(stop, MonotonicSeconds());
  // Before the hello they are evidence of a failure, or a login's usual words.
  if (lines.empty() || !(port.greeted || parts_.options->verbose > 0)) return;
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    line = absl::StripSuffix(line, "\r");  // ssh ends its own so
    if (port.words_shown > kMostWords) return;
    const bool last = port.words_shown++ == kMostWords;
    parts_.console->Say(absl::StrCat("host ", parts_.hosts->Name(host), ": ",
                                     last ? "more words of its remote shell or hvdd are left out"
                                          : Printable({line.data(), line.size()})));
  }
}

// ---- what goes wrong ----

void HostStarts::OnChildExited(int host, int wait_status) {
  HostPort& port = parts_.hosts->ports[host];
  OnErrors(host);
  port.CloseErrors();
  if (!port.greeted) {
    OnHello(host);  // its last words
    if (port.greeted || parts_.state->facts().hosts[host].phase == HostFact::kGone) return;
    return ExplainExit(host, wait_status);
  }
  const std::string shell = ShellName(*parts_.options, parts_.hosts->targets[host]);
  port.ended = ExplainLinkEnd(wait_status, shell, parts_.hosts->Name(host));
  if (parts_.state->facts().hosts[host].fault == HostFact::kLost) {
    parts_.state->HostDetail(host, port.ended, MonotonicSeconds());
  }
}

void HostStarts::ExplainExit(int host, int wait_status) {
  const RunOptions& options = *parts_.options;
  const HostTarget& target = parts_.hosts->targets[host];
  const HostPort& port = parts_.hosts->ports[host];
  const std::string shell = ShellName(options, target);
  utsname here = {};
  uname(&here);
  const StartFailure failure =
      ExplainStartFailure({wait_status, port.error_text(), port.noise(), shell,
                           parts_.hosts->Name(host), WhereHvddIsSought(options, *parts_.start),
                           port.logged_in(), shell.empty() ? "" : LoginCommand(options, target),
                           SshTarget(options, target), here.machine});
  if (TriesAgain(host, failure)) return;
  HostFact fault;
  fault.cause = failure.cause;
  fault.remedy = failure.remedy;
  NotStarted(host, std::move(fault));
}

// Whether there is another attempt.
bool HostStarts::TriesAgain(int host, const StartFailure& failure) {
  HostPort& port = parts_.hosts->ports[host];
  if (!parts_.state->starting()) return false;
  const double now = MonotonicSeconds();
  if (parts_.options->waits_for_hosts && MayComeYet(failure.fault)) {
    if (port.awaited.cause != failure.cause) {
      parts_.console->Say(
          absl::StrCat("host ", parts_.hosts->Name(host), ": ", failure.cause,
                       "; it may only be starting, and is tried until --start-timeout ",
                       parts_.options->start_timeout_s, " s is over"));
    }
    port.awaited = failure;
    port.restart_at = now + kAwaitedPauseS;
    return true;
  }
  if (failure.fault != StartFault::kOverloaded || port.attempts >= kMaxAttempts) return false;
  // Spread, so that the hosts behind one sshd do not come back together.
  port.restart_at = now + 0.3 * (1 << port.attempts) + 0.05 * (host % 16);
  return true;
}

void HostStarts::NotStarted(int host, HostFact fault) {
  HostPort& port = parts_.hosts->ports[host];
  fault.evidence = port.Evidence();
  if (fault.fault_code == 0) fault.fault_code = kExitLauncher;
  port.restart_at = 0;
  Kill(host);
  parts_.state->HostNotStarted(host, fault, MonotonicSeconds());
}

void HostStarts::ReportOverdue(int host) {
  HostFact fault;
  if (const StartFailure& awaited = parts_.hosts->ports[host].awaited; !awaited.cause.empty()) {
    fault.cause = absl::StrFormat("%s, for --start-timeout %g s", awaited.cause,
                                  parts_.options->start_timeout_s);
    fault.remedy = awaited.remedy;
    return NotStarted(host, std::move(fault));
  }
  fault.cause = absl::StrFormat("no word from hvdd within --start-timeout %g s",
                                parts_.options->start_timeout_s);
  fault.remedy =
      ShellName(*parts_.options, parts_.hosts->targets[host]).empty()
          ? "give it longer (--start-timeout), or find what holds this machine up"
          : absl::StrCat("does a login work, and does it end quickly? ",
                         Printable(LoginCommand(*parts_.options, parts_.hosts->targets[host])),
                         " true");
  NotStarted(host, std::move(fault));
}

}  // namespace hvd::cli
