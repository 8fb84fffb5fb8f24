// SPDX-License-Identifier: Apache-2.0
// The driver's hosts, until their links are open.
#include <string.h>
#include <sys/epoll.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "cli/driver/loop.h"
#include "cli/reach/agent_failure.h"
#include "cli/reach/ssh_failure.h"
#include "proto/exit_code.h"

namespace hvd {
namespace {

constexpr int kMaxAttempts = 4;  // the first and three more
constexpr double kAwaitedPauseS = 0.5;
// Lines of one host's stderr. A background job of a login may print without end, and our queue for
// a slow terminal has none either.
constexpr int kMostWords = 1000;

}  // namespace

// The spawner has been told of the first of them, and starts these unasked.
void Driver::AddFirstHosts() {
  if (options_.elastic) return;
  const int hosts = static_cast<int>(options_.topology.hosts().size());
  for (int host = 0; host < hosts; ++host) AddHost(TargetOf(options_, host));
  next_start_ = std::min(hosts, kStartsAtOnce);
}

// One that is found while the job runs; it may have been lost before, as another number.
void Driver::ReachHost(const HostSlots& host) {
  const auto named = [&](const HostTarget& target) {
    return target.is_local && target.host.name == host.name;
  };
  bool is_local = std::any_of(targets_.begin(), targets_.end(), named);
  for (size_t i = 0; i < options_.host_of.size(); ++i) {
    is_local |= options_.host_of[i].name == host.name && options_.is_local[i];
  }
  if (!is_local && options_.is_local_host) is_local = options_.is_local_host(host);
  AddHost({host, is_local});
  StartNext();
}

// It is lost, or was let go: whatever lives there ends with its link.
void Driver::DropHost(int host) {
  HostPort& port = ports_[host];
  port.restart_at = 0;
  links_.GiveUp(host);
  timeline_.HostEnded(host);
  store_.HostEnded(host);
  std::erase_if(greeted_, [host](const auto& entry) { return entry.second == host; });
  if (host < next_start_) AskSpawner(FrameKind::kKill, host);
  StartNext();
}

void Driver::AddHost(HostTarget target) {
  targets_.push_back(std::move(target));
  ports_.emplace_back();
  links_.AddHost();
  store_.AddHost();
  timeline_.AddHost();
}

DiscoveryHandlers Driver::DiscoveryWays() {
  DiscoveryHandlers ways;
  ways.discovered = [this](const std::vector<HostSlots>& hosts) {
    state_.Discovered(hosts, MonotonicSeconds());
  };
  ways.failed = [this](const std::string& why) { state_.DiscoveryFailed(why, MonotonicSeconds()); };
  ways.over = [this](const std::string& whose) {
    state_.ManagerStops("the end of " + whose, MonotonicSeconds());
  };
  ways.say = [this](const std::string& text) { Say(text); };
  ways.ask = [this](const Frame& frame) {
    return spawner_.valid() && SendFrame(spawner_.get(), frame) == FrameResult::kDone;
  };
  return ways;
}

void Driver::TakeSpawner() {
  while (spawner_.valid()) {
    Frame frame;
    const FrameResult result = ReceiveFrame(spawner_.get(), &frame);
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, spawner_.get(), nullptr);
      spawner_.Reset();
      return state_.ProcessLost(
          Ending::kSpawnerLost,
          "its spawner process died, and with it every ssh and local daemon that it had started",
          MonotonicSeconds());
    }
    if (frame.kind == FrameKind::kLookText || frame.kind == FrameKind::kLookEnded) {
      discovery_.Heard(frame, MonotonicSeconds());
      continue;
    }
    if (frame.kind == FrameKind::kSignal) TermOfHelper();
    const int host = static_cast<int>(frame.index);
    if (host >= static_cast<int>(ports_.size())) continue;
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

void Driver::AskSpawner(FrameKind kind, int host) {
  Frame frame;
  frame.kind = kind;
  frame.index = host;
  frame.end = !ports_[host].greeted;
  // The spawner reads at once and frames are tiny: a full socket means that it is dead or stuck.
  if (spawner_.valid()) SendFrame(spawner_.get(), frame);
}

// The spawner knows the commands of those that it has started by itself.
void Driver::AskToStart(int host) {
  // hvdrun has seen that it can be made.
  const auto argv = DaemonArgv(options_, setup_.start, targets_[host]);
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

void Driver::OnStarted(int host, Frame* frame) {
  if (frame->fds.size() != 2) {  // the kernel has kept those that are too many for us
    HostFact fault;
    fault.cause = "hvdrun has too many open files";
    fault.remedy = "raise this machine's hard limit (ulimit -Hn)";
    return NotStarted(host, std::move(fault));
  }
  HostPort& port = ports_[host];
  port.Begin(std::move(frame->fds[0]), std::move(frame->fds[1]));
  if (options_.verbose > 0) SayCommand(host);
  // Edges: bytes that are only looked at would wake us for ever.
  Watch(port.socket(), EPOLLIN | EPOLLET, DriverSource::kHello, host);
  Watch(port.errors(), EPOLLIN, DriverSource::kErrors, host);
}

void Driver::SayCommand(int host) {
  std::string command = ShortCommand(options_, targets_[host]);
  if (options_.verbose > 1) {
    const auto argv = DaemonArgv(options_, setup_.start, targets_[host]);
    if (argv.ok()) command = absl::StrJoin(*argv, " ");
  }
  Say(absl::StrCat("host ", HostName(host), ": ", Printable(command)));
}

void Driver::OnHello(int host) {
  HostPort& port = ports_[host];
  if (port.greeted || port.socket() < 0) return;
  Greeting greeting = port.Greet(setup_.start.marker, HostName(host));
  if (greeting.state == Greeting::kWaiting) return;
  if (greeting.state == Greeting::kWrong) {
    HostFact fault;
    fault.cause = std::move(greeting.cause);
    fault.remedy = std::move(greeting.remedy);
    return NotStarted(host, std::move(fault));
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, port.socket(), nullptr);
  const std::string& identity = port.identity();
  if (!identity.empty() && !greeted_.emplace(identity, host).second) {
    return RefuseTwin(host, greeted_[identity]);
  }
  port.greeted = true;
  // ssh and a daemon of this machine lose no time.
  if (!options_.rsh_agent.empty()) AskSpawner(FrameKind::kHasten, host);
  links_.Open({host, port.TakeSocket(), !targets_[host].is_local});
  if (options_.verbose > 0 && !port.noise().empty()) {
    Say(absl::StrCat("host ", HostName(host), ": noise at login:\n", QuoteLines(port.noise(), 12)));
  }
  StartNext();
  state_.HostGreeted(host, MonotonicSeconds());
}

// Its ranks would be given the same cores and local ranks twice.
void Driver::RefuseTwin(int host, int twin) {
  const auto& hosts = state_.facts().hosts;
  HostFact fault;
  fault.cause = absl::StrCat("it is the same host as ", HostName(twin));
  fault.remedy = absl::StrCat("name it once, with the slots of both: ", HostName(twin), ":",
                              hosts[twin].ranks + hosts[host].ranks);
  NotStarted(host, std::move(fault));
}

bool Driver::MayStartNext() const {
  if (!state_.starting() || next_start_ >= static_cast<int>(ports_.size())) return false;
  if (!options_.elastic) return true;
  int under_way = 0;
  for (int host = 0; host < next_start_; ++host) {
    under_way += state_.facts().hosts[host].phase == HostFact::kStarting;
  }
  return under_way < kStartsAtOnce;
}

void Driver::StartNext() {
  while (MayStartNext()) {
    const int host = next_start_++;
    // A host of an elastic job may have been let go meanwhile.
    if (state_.facts().hosts[host].phase != HostFact::kGone) AskToStart(host);
    if (!options_.elastic) return;
  }
}

// A remote shell that hangs does not see that we are gone.
void Driver::EndLogins() {
  for (int host = 0; host < next_start_; ++host) {
    if (!ports_[host].greeted) AskSpawner(FrameKind::kKill, host);
  }
}

void Driver::OnErrors(int host) {
  HostPort& port = ports_[host];
  if (port.errors() < 0) return;
  const std::string lines = port.TakeErrors();
  const std::string stop = FindManagerStop(lines);
  if (!stop.empty() && !options_.elastic) state_.ManagerStops(stop, MonotonicSeconds());
  // Before the hello they are evidence of a failure, or a login's usual words.
  if (lines.empty() || !(port.greeted || options_.verbose > 0)) return;
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    line = absl::StripSuffix(line, "\r");  // ssh ends its own so
    if (port.words_shown > kMostWords) return;
    const bool last = port.words_shown++ == kMostWords;
    Say(absl::StrCat("host ", HostName(host), ": ",
                     last ? "more words of its remote shell or hvdd are left out"
                          : Printable({line.data(), line.size()})));
  }
}

void Driver::OnChildExited(int host, int wait_status) {
  HostPort& port = ports_[host];
  OnErrors(host);
  port.CloseErrors();
  const std::string shell = ShellName(options_, targets_[host]);
  if (port.greeted) {
    port.ended = ExplainLinkEnd(wait_status, shell, HostName(host));
    if (state_.facts().hosts[host].fault == HostFact::kLost) {
      state_.HostDetail(host, port.ended, MonotonicSeconds());
    }
    return;
  }
  OnHello(host);  // its last words
  if (port.greeted || state_.facts().hosts[host].phase == HostFact::kGone) return;
  utsname here = {};
  uname(&here);
  const StartFailure failure =
      ExplainStartFailure({wait_status, port.error_text(), port.noise(), shell, HostName(host),
                           WhereHvddIsSought(options_, setup_.start), port.logged_in(),
                           shell.empty() ? "" : LoginCommand(options_, targets_[host]),
                           SshTarget(options_, targets_[host]), here.machine});
  if (TriesAgain(host, failure)) return;
  HostFact fault;
  fault.cause = failure.cause;
  fault.remedy = failure.remedy;
  NotStarted(host, std::move(fault));
}

// Whether there is another attempt.
bool Driver::TriesAgain(int host, const StartFailure& failure) {
  HostPort& port = ports_[host];
  if (!state_.starting()) return false;
  const double now = MonotonicSeconds();
  if (options_.waits_for_hosts && MayComeYet(failure.fault)) {
    if (port.awaited.cause != failure.cause) {
      Say(absl::StrCat("host ", HostName(host), ": ", failure.cause,
                       "; it may only be starting, and is tried until --start-timeout ",
                       options_.start_timeout_s, " s is over"));
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

void Driver::NotStarted(int host, HostFact fault) {
  HostPort& port = ports_[host];
  fault.evidence = port.Evidence();
  if (fault.fault_code == 0) fault.fault_code = kExitLauncher;
  port.restart_at = 0;
  AskSpawner(FrameKind::kKill, host);
  state_.HostNotStarted(host, fault, MonotonicSeconds());
}

}  // namespace hvd
