#include "cli/driver.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/driver_console.h"
#include "cli/driver_host.h"
#include "cli/driver_link.h"
#include "cli/driver_state.h"
#include "cli/exit_code.h"
#include "cli/job_report.h"
#include "cli/spawner.h"
#include "cli/ssh_failure.h"
#include "cli/ssh_words.h"
#include "cli/verdict_text.h"

namespace hvd {
namespace {

constexpr int kMaxAttempts = 4;  // the first and three more
constexpr uint64_t kStdinWindow = 64 * 1024;

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

// Who an epoll event is for.
enum class Source : uint32_t { kConsole, kSpawner, kLinks, kHello, kErrors };

class Driver {
 public:
  explicit Driver(DriverSetup setup)
      : setup_(std::move(setup)),
        options_(*setup_.options),
        console_(std::move(setup_.console)),
        spawner_(std::move(setup_.spawner)),
        state_(
            options_.topology,
            {options_.start_timeout_s, options_.run_timeout_s, options_.grace_s, options_.verbose},
            Now()),
        ports_(options_.topology.hosts().size()),
        links_(static_cast<int>(ports_.size())),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        next_start_(std::min<int>(ports_.size(), kStartsAtOnce)) {
    state_.mutable_facts()->job = setup_.secrets.job;
  }

  void Run();

 private:
  // The loop.
  void Watch(int fd, uint32_t events, Source source, int host = 0);
  void Turn();
  double NextDeadline() const;
  void TickClocks();
  void CarryOut();
  void Finish();

  // The console.
  void TakeConsole();
  void OnConsoleFrame(Frame* frame);
  void Say(const std::string& text);
  void SendConsole();

  // The spawner and the hosts that it starts.
  void TakeSpawner();
  void AskSpawner(FrameKind kind, int host);
  void OnStarted(int host, Frame* frame);
  void OnChildExited(int host, int wait_status);
  void OnHello(int host);
  void OnErrors(int host);
  void NotStarted(int host, HostFact fault);
  void StartNext();
  std::string ShellName(int host) const;
  const std::string& HostName(int host) const { return options_.topology.hosts()[host].name; }

  // The daemons.
  void TakeArrivals();
  void OnEvent(int host, const v1::Event& event);
  void OnOutput(int host, const v1::OutputChunk& chunk);
  void OnLinkEnded(int host);
  void Acknowledge(bool even_if_slow);
  void GiveStdinRoom();

  DriverSetup setup_;
  const RunOptions& options_;
  DriverConsole console_;
  Descriptor spawner_;
  JobState state_;
  std::vector<HostPort> ports_;
  DaemonLinks links_;
  Descriptor epoll_;
  int next_start_;  // the first host that the spawner has not been asked for
  double next_beat_ = 0;
  bool launched_ = false;
  bool console_writable_watched_ = false;
};

void Driver::Watch(int fd, uint32_t events, Source source, int host) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = (static_cast<uint64_t>(source) << 32) | static_cast<uint32_t>(host);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

void Driver::Run() {
  next_beat_ = Now() + kBeatPeriodS;
  Watch(console_.fd(), EPOLLIN, Source::kConsole);
  Watch(spawner_.get(), EPOLLIN, Source::kSpawner);
  Watch(links_.event_fd(), EPOLLIN, Source::kLinks);
  while (!state_.finished()) {
    Turn();
    CarryOut();
  }
  Finish();
}

double Driver::NextDeadline() const {
  double next = std::min(state_.deadline(), next_beat_);
  if (state_.starting()) next = std::min(next, state_.start_deadline());
  for (const HostPort& port : ports_) {
    if (port.restart_at > 0) next = std::min(next, port.restart_at);
  }
  return next;
}

void Driver::Turn() {
  const double left = std::max(0.0, NextDeadline() - Now());
  epoll_event events[32];
  const int timeout = static_cast<int>(std::ceil(std::min(left, 3600.0) * 1000));
  const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout);
  for (int i = 0; i < count; ++i) {
    const auto source = static_cast<Source>(events[i].data.u64 >> 32);
    const int host = static_cast<int>(events[i].data.u64 & 0xffffffff);
    switch (source) {
      case Source::kConsole:
        SendConsole();
        if (events[i].events & ~EPOLLOUT) TakeConsole();
        break;
      case Source::kSpawner:
        TakeSpawner();
        break;
      case Source::kLinks:
        TakeArrivals();
        break;
      case Source::kHello:
        OnHello(host);
        break;
      case Source::kErrors:
        OnErrors(host);
        break;
    }
  }
  TickClocks();
}

void Driver::TickClocks() {
  const double now = Now();
  if (now >= next_beat_) {
    TakeArrivals();  // what has come already may prove life
    next_beat_ = now + kBeatPeriodS;
    for (size_t host = 0; host < ports_.size(); ++host) {
      std::optional<BeatLease>& lease = ports_[host].lease;
      if (!lease || state_.facts().hosts[host].phase == HostFact::kGone) continue;
      v1::HeartBeat beat;
      beat.set_number(lease->Send(now));
      beat.set_echo(lease->heard());
      links_.SendBeat(host, beat);
      if (now < lease->deadline()) continue;
      state_.HostLost(host,
                      absl::StrFormat("no sign of life for %.1f s (--lease %g s): machine, network "
                                      "or remote shell is stuck",
                                      now - lease->proven(), options_.lease_s),
                      now);
      state_.HostDetail(host, "its ranks end with the lease", now);
      AskSpawner(FrameKind::kKill, host);  // it may be stopped, and would outlive us
    }
  }
  if (state_.starting() && now >= state_.start_deadline()) {
    for (size_t host = 0; host < ports_.size(); ++host) {
      if (ports_[host].greeted) continue;
      HostFact fault;
      fault.cause = absl::StrFormat("no word from hvdd within --start-timeout %g s",
                                    options_.start_timeout_s);
      fault.remedy = absl::StrCat("does a login work, and does it end quickly? ", ShellName(host),
                                  ShellName(host).empty() ? "" : " ", HostName(host), " true");
      NotStarted(host, std::move(fault));
    }
  }
  for (size_t host = 0; host < ports_.size(); ++host) {
    if (ports_[host].restart_at == 0 || now < ports_[host].restart_at) continue;
    ports_[host].restart_at = 0;
    AskSpawner(FrameKind::kStart, host);
  }
  if (now >= state_.deadline()) state_.Tick(now);
}

// Does what the state table wants, until it wants nothing more.
void Driver::CarryOut() {
  for (const Action& action : state_.TakeActions()) {
    switch (action.kind) {
      case Action::kLaunch:
        launched_ = true;
        for (size_t host = 0; host < ports_.size(); ++host) {
          v1::Command command;
          *command.mutable_launch() = MakeLaunch(options_, setup_.secrets, setup_.limits, host);
          links_.Send(host, command);
        }
        GiveStdinRoom();
        break;
      case Action::kSend:
        for (size_t host = 0; host < ports_.size(); ++host) {
          const bool meant = action.host == kAllHosts || action.host == static_cast<int>(host);
          if (meant) links_.Send(host, action.command);
        }
        break;
      case Action::kSay:
        Say(action.text);
        break;
    }
  }
  const bool paused = console_.is_slow();
  state_.OutputPaused(paused, Now());
  if (!paused) Acknowledge(false);
}

// The verdict, then nothing: whatever is left ends with our descriptors.
void Driver::Finish() {
  CarryOut();
  const JobFacts& facts = state_.facts();
  const Verdict verdict = Judge(facts);
  std::string text = RenderVerdict(facts, verdict);
  if (!options_.output_directory.empty()) {
    const absl::Status written =
        WriteJobReport(options_.output_directory, RenderJobReport(facts, verdict));
    if (!written.ok()) {
      absl::StrAppend(&text, "hvdrun: job.json: ", std::string(written.message()), "\n");
    }
  }
  if (facts.ending == Ending::kOutputGone) console_.Forget();
  Frame final;
  final.kind = FrameKind::kFinal;
  final.number = verdict.exit_code;
  final.text = std::move(text);
  console_.Put(std::move(final));
  console_.FlushAll();
}

void Driver::TakeConsole() {
  for (;;) {
    Frame frame;
    const FrameResult result = ReceiveFrame(console_.fd(), &frame);
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, console_.fd(), nullptr);
      console_.Close();
      return state_.ProcessLost(Ending::kConsoleLost, "hvdrun's console process died", Now());
    }
    OnConsoleFrame(&frame);
  }
}

void Driver::OnConsoleFrame(Frame* frame) {
  if (frame->kind == FrameKind::kSignal) {
    if (frame->end) return state_.ProcessLost(Ending::kHungUp, "the terminal is gone", Now());
    return state_.Signalled(static_cast<int>(frame->number), Now());
  }
  if (frame->kind == FrameKind::kOutputGone) {
    return state_.ProcessLost(Ending::kOutputGone, "nobody reads hvdrun's stdout any more", Now());
  }
  if (frame->kind != FrameKind::kStdin) return;
  v1::Command command;
  command.mutable_stdin_chunk()->set_data(std::move(frame->text));
  command.mutable_stdin_chunk()->set_end(frame->end);
  for (size_t host = 0; host < ports_.size(); ++host) {
    const bool meant =
        options_.stdin_rank == -2 ||
        (options_.stdin_rank >= 0 &&
         options_.topology.place(options_.stdin_rank).host == static_cast<int>(host));
    if (meant) links_.Send(host, command);
  }
}

void Driver::Say(const std::string& text) {
  Frame frame;
  frame.kind = FrameKind::kNotice;
  frame.text = absl::StrCat("hvdrun: ", text.substr(0, kMaxFrameText - 16),
                            !text.empty() && text.back() == '\n' ? "" : "\n");
  console_.Put(std::move(frame));
  SendConsole();
}

void Driver::SendConsole() {
  console_.Flush();
  const bool want = !console_.empty();
  if (want == console_writable_watched_ || console_.fd() < 0) return;
  console_writable_watched_ = want;
  Watch(console_.fd(), want ? EPOLLIN | EPOLLOUT : EPOLLIN, Source::kConsole);
}

void Driver::TakeSpawner() {
  while (spawner_) {
    Frame frame;
    const FrameResult result = ReceiveFrame(spawner_.get(), &frame);
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, spawner_.get(), nullptr);
      spawner_.Reset();
      return state_.ProcessLost(
          Ending::kSpawnerLost,
          "its spawner process died, and with it every ssh and local daemon that it had started",
          Now());
    }
    const int host = static_cast<int>(frame.index);
    if (host >= static_cast<int>(ports_.size())) continue;
    if (frame.kind == FrameKind::kStarted) OnStarted(host, &frame);
    if (frame.kind == FrameKind::kExited) OnChildExited(host, static_cast<int>(frame.number));
    if (frame.kind == FrameKind::kFailed) {
      HostFact fault;
      fault.cause = absl::StrCat("hvdrun cannot start a process here: ", frame.text);
      fault.remedy = "raise this machine's limits (ulimit -n, ulimit -u)";
      NotStarted(host, std::move(fault));
    }
  }
}

void Driver::AskSpawner(FrameKind kind, int host) {
  Frame frame;
  frame.kind = kind;
  frame.index = host;
  // The spawner reads at once and frames are tiny: a full socket means that it is dead or stuck.
  if (spawner_) SendFrame(spawner_.get(), frame);
}

void Driver::OnStarted(int host, Frame* frame) {
  if (frame->fds.size() != 2) return;
  HostPort& port = ports_[host];
  port.Begin(std::move(frame->fds[0]), std::move(frame->fds[1]));
  if (options_.verbose) {
    const auto argv = DaemonArgv(options_, setup_.start, host);
    if (argv.ok()) Say(absl::StrCat("host ", HostName(host), ": ", absl::StrJoin(*argv, " ")));
  }
  // Edges: bytes that are only looked at would wake us for ever.
  Watch(port.socket(), EPOLLIN | EPOLLET, Source::kHello, host);
  Watch(port.errors(), EPOLLIN, Source::kErrors, host);
}

std::string Driver::ShellName(int host) const {
  if (options_.is_local[host]) return "";
  if (options_.rsh_agent.empty()) return "ssh";
  const auto words = SplitShellWords(options_.rsh_agent);
  return words.ok() && !words->empty() ? words->front() : "the remote shell";
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
  port.greeted = true;
  port.lease.emplace(Now(), options_.lease_s);
  links_.Open(host, port.TakeSocket());
  if (options_.verbose && !port.noise().empty()) {
    Say(absl::StrCat("host ", HostName(host), ": noise at login:\n", QuoteLines(port.noise(), 12)));
  }
  StartNext();
  state_.HostGreeted(host, Now());
}

void Driver::StartNext() {
  if (next_start_ < static_cast<int>(ports_.size())) {
    AskSpawner(FrameKind::kStart, next_start_++);
  }
}

void Driver::OnErrors(int host) {
  HostPort& port = ports_[host];
  if (port.errors() < 0) return;
  const std::string lines = port.TakeErrors();
  // Before the hello they are evidence of a failure, or a login's usual words.
  if (lines.empty() || !(port.greeted || options_.verbose)) return;
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    Say(absl::StrCat("host ", HostName(host), ": ", line));
  }
}

void Driver::OnChildExited(int host, int wait_status) {
  HostPort& port = ports_[host];
  OnErrors(host);
  port.CloseErrors();
  const std::string shell = ShellName(host);
  if (port.greeted) {
    const char* name = WIFSIGNALED(wait_status) ? sigdescr_np(WTERMSIG(wait_status)) : nullptr;
    port.ended = absl::StrCat(shell.empty() ? "hvdd" : shell,
                              WIFSIGNALED(wait_status)
                                  ? absl::StrCat(" was killed by signal ", WTERMSIG(wait_status),
                                                 " (", name ? name : "?", ")")
                                  : absl::StrCat(" exited with code ", WEXITSTATUS(wait_status)));
    if (state_.facts().hosts[host].fault == HostFact::kLost) {
      state_.HostDetail(host, port.ended, Now());
    }
    return;
  }
  OnHello(host);  // its last words
  if (port.greeted || state_.facts().hosts[host].phase == HostFact::kGone) return;
  const StartFailure failure =
      ExplainStartFailure({wait_status, port.error_text(), port.noise(), shell, HostName(host),
                           WhereHvddIsSought(options_, setup_.start)});
  if (failure.fault == StartFault::kOverloaded && port.attempts < kMaxAttempts &&
      state_.starting()) {
    // Spread, so that the hosts behind one sshd do not come back together.
    port.restart_at = Now() + 0.3 * (1 << port.attempts) + 0.05 * (host % 16);
    return;
  }
  HostFact fault;
  fault.cause = failure.cause;
  fault.remedy = failure.remedy;
  NotStarted(host, std::move(fault));
}

void Driver::NotStarted(int host, HostFact fault) {
  HostPort& port = ports_[host];
  fault.evidence = port.Evidence();
  if (fault.fault_code == 0) fault.fault_code = kExitLauncher;
  port.restart_at = 0;
  AskSpawner(FrameKind::kKill, host);
  StartNext();
  state_.HostNotStarted(host, fault, Now());
}

void Driver::TakeArrivals() {
  for (Arrival& arrival : links_.Take()) {
    switch (arrival.kind) {
      case Arrival::kBeat:
        if (ports_[arrival.host].lease) {
          ports_[arrival.host].lease->Hear(arrival.beat.number(), arrival.beat.echo());
        }
        break;
      case Arrival::kEvent:
        OnEvent(arrival.host, arrival.event);
        break;
      case Arrival::kOutput:
        OnOutput(arrival.host, arrival.output);
        break;
      case Arrival::kEnded:
        OnLinkEnded(arrival.host);
        break;
    }
  }
}

void Driver::OnEvent(int host, const v1::Event& event) {
  if (event.kind_case() == v1::Event::kStdinCredit) {
    ports_[host].stdin_taken += event.stdin_credit().bytes();
    return GiveStdinRoom();
  }
  state_.Heard(host, event, Now());
}

void Driver::OnOutput(int host, const v1::OutputChunk& chunk) {
  ports_[host].output_received += chunk.data().size();
  const int rank = static_cast<int>(chunk.rank());
  size_t at = 0;
  do {
    Frame frame;
    frame.kind = FrameKind::kOutput;
    frame.index = chunk.rank();
    frame.is_stderr = chunk.is_stderr();
    frame.text = chunk.data().substr(at, kMaxFrameText);
    at += frame.text.size();
    const bool last = at >= chunk.data().size();
    frame.number = last ? chunk.skipped_lines() : 0;
    frame.end = last && chunk.end();
    console_.Put(std::move(frame));
  } while (at < chunk.data().size());
  SendConsole();
  state_.StreamMoved(rank, chunk.end(), Now());
}

void Driver::OnLinkEnded(int host) {
  TakeSpawner();  // its death comes before that of its children
  if (state_.facts().hosts[host].phase == HostFact::kGone) return;
  state_.HostLost(host, "the connection to its hvdd closed", Now());
  if (!ports_[host].ended.empty()) state_.HostDetail(host, ports_[host].ended, Now());
}

void Driver::Acknowledge(bool even_if_slow) {
  if (console_.is_slow() && !even_if_slow) return;
  for (size_t host = 0; host < ports_.size(); ++host) {
    HostPort& port = ports_[host];
    if (port.output_acknowledged == port.output_received) continue;
    port.output_acknowledged = port.output_received;
    links_.AckOutput(host, port.output_received);
  }
}

// Stdin is read from the person only as fast as the slowest of its ranks takes it.
void Driver::GiveStdinRoom() {
  if (!launched_ || options_.stdin_rank == -1) return;
  uint64_t taken = std::numeric_limits<uint64_t>::max();
  for (size_t host = 0; host < ports_.size(); ++host) {
    const bool meant = options_.stdin_rank == -2 ||
                       options_.topology.place(options_.stdin_rank).host == static_cast<int>(host);
    if (meant) taken = std::min(taken, ports_[host].stdin_taken);
  }
  Frame frame;
  frame.kind = FrameKind::kStdinRoom;
  frame.number = taken + kStdinWindow;
  console_.Put(std::move(frame));
  SendConsole();
}

}  // namespace

void RunDriver(DriverSetup setup) {
  Driver driver(std::move(setup));
  driver.Run();
  _exit(0);
}

}  // namespace hvd
