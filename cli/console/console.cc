#include "cli/console/console.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process_end.h"
#include "cli/console/outputs.h"
#include "cli/console/rank_files.h"
#include "cli/console/signals.h"
#include "cli/console/sink.h"
#include "cli/link/frame.h"
#include "cli/report/start_status.h"
#include "proto/exit_code.h"

namespace hvd {
namespace {

// What may wait for a slow reader of ours before the driver has to keep it.
constexpr size_t kMaxPending = 256 * 1024;
// A reader of ours that takes nothing for the grace, and for this at least, is stuck …
constexpr double kLeastPatienceS = 1;
// … and when the person hurries.
constexpr double kHurriedPatienceS = 0.2;
constexpr double kLookS = 0.1;  // at what a reader takes, while the job ends
constexpr double kStatusEveryS = 0.1;
constexpr double kNever = std::numeric_limits<double>::infinity();

Descriptor MakeBell() {
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) throw std::system_error(errno, std::generic_category());
  return Descriptor(bell);
}

class Console {
 public:
  Console(const RunOptions& options, Descriptor driver, pid_t driver_pid)
      : driver_(std::move(driver)),
        driver_pid_(driver_pid),
        lease_s_(options.lease_s),
        patience_s_(std::max(options.grace_s, kLeastPatienceS)),
        out_(STDOUT_FILENO, "stdout",
             OutputPrinter(&options.topology, StyleOf(1, options.timestamps)), bell_.get()),
        own_err_(STDERR_FILENO, "stderr",
                 OutputPrinter(&options.topology, StyleOf(2, options.timestamps)), bell_.get()),
        err_(OutputsAreOne() ? out_ : own_err_),
        stdin_open_(options.stdin_rank != -1),
        stdin_is_terminal_(isatty(STDIN_FILENO) != 0) {
    if (options.files_here) {
      files_.emplace(options.output_directory, options.topology.size(), bell_.get());
    }
  }

  int Run();

 private:
  bool WantsStdin() const { return stdin_open_ && stdin_read_ < stdin_room_; }
  bool MayReadStdin() const;
  bool IsFull() const;
  bool IsDone() const {
    return out_.done() && own_err_.done() && (!files_ || files_->waiting() == 0);
  }
  double PollSeconds(bool may_read, double status_due) const;
  void Turn();
  void TakeSignals();
  void OnSignal(int signal);
  void OnDriverStopped();
  void ContinueDriver();
  bool TakeFrames();
  double ShowUnfinished(bool held_up);
  double ShowStatus();
  void OnFrame(const Frame& frame);
  void OnOutput(const Frame& frame);
  void ReadStdin();
  void PumpAll();
  void OnWriteFailed(const ConsoleSink& sink, int error);
  void AgeAll();
  void TellTaken();
  void AnswerDrain();
  std::vector<std::string> Losses() const;
  void Ask(Frame frame);
  void SendAsked();
  void OnDriverGone();

  Descriptor driver_;
  const pid_t driver_pid_;
  ConsoleSignals signals_;  // before the writers: their threads take no signal
  const Descriptor bell_ = MakeBell();
  const double lease_s_;
  double patience_s_;
  ConsoleSink out_;
  ConsoleSink own_err_;
  ConsoleSink&
      err_;  // out_ where stdout and stderr are one: two queues would cut each other's lines
  std::optional<RankFiles> files_;
  bool files_failed_ = false;  // and told
  std::deque<Frame> asked_;    // for the driver, not sent yet
  uint64_t output_came_ = 0;   // bytes
  uint64_t output_told_ = 0;   // … and as many as the driver knows to be taken
  bool stdin_open_;
  const bool stdin_is_terminal_;
  uint64_t stdin_room_ = 0;
  uint64_t stdin_read_ = 0;
  int interrupts_ = 0;
  bool driver_gone_ = false;
  bool ending_ = false;       // a reader that takes nothing is not waited for without end
  bool drain_asked_ = false;  // the driver waits for all output to be written
  double turned_at_ = MonotonicSeconds();
  double continue_at_ = kNever;  // the driver has been stopped, and then it has been for too long
  std::optional<int> exit_code_;
  std::string verdict_;  // shown when stdout has everything
  const double began_ = MonotonicSeconds();
  std::string status_;       // of the start, as the driver tells it
  double status_at_ = 0;     // when it is drawn again
  double show_at_ = kNever;  // when a line without an end is due
};

// Never from the background: that would stop us, or steal the shell's input.
bool Console::MayReadStdin() const {
  return !stdin_is_terminal_ || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int Console::Run() {
  while (true) {
    if (drain_asked_ && IsDone()) AnswerDrain();
    if (exit_code_ && out_.done()) {
      err_.printer().Say(std::exchange(verdict_, ""), Tone::kError);
      PumpAll();
      if (err_.done()) return *exit_code_;
    }
    Turn();
  }
}

bool Console::IsFull() const {
  return out_.backlog() > kMaxPending || own_err_.backlog() > kMaxPending ||
         (files_ && files_->waiting() > kMaxPending);
}

// How long nothing may come; kNever: for ever.
double Console::PollSeconds(bool may_read, double status_due) const {
  // A shell's `fg` tells a running job nothing, so one that wants the keyboard looks twice a
  // second.
  double left = WantsStdin() && !may_read ? 0.5 : kNever;
  if (ending_ && !IsDone()) left = std::min(left, kLookS);
  const double due = std::min({show_at_, continue_at_, status_due});
  if (due < kNever) left = std::clamp(due - MonotonicSeconds(), 0.0, left);
  return left;
}

void Console::Turn() {
  const double status_at = ShowStatus();
  PumpAll();
  enum { kSignals, kDriver, kBell, kStdin };
  const bool may_read = MayReadStdin();
  const short to_driver = asked_.empty() ? 0 : POLLOUT;
  pollfd waits[] = {
      {signals_.fd(), POLLIN, 0},
      {driver_gone_ ? -1 : driver_.get(), static_cast<short>(POLLIN | to_driver), 0},
      {bell_.get(), POLLIN, 0},
      {WantsStdin() && may_read ? STDIN_FILENO : -1, POLLIN, 0},
  };
  const double left = PollSeconds(may_read, status_at);
  const int timeout = left < kNever ? static_cast<int>(std::ceil(left * 1000)) : -1;
  if (poll(waits, std::size(waits), timeout) < 0 && errno != EINTR) return;
  if (waits[kSignals].revents) TakeSignals();
  eventfd_t rings;
  if (waits[kBell].revents) eventfd_read(bell_.get(), &rings);
  if (waits[kStdin].revents) ReadStdin();
  if (waits[kDriver].revents & POLLOUT) SendAsked();
  const bool held_up = IsFull();
  const bool took_all = (waits[kDriver].revents & ~POLLOUT) == 0 || TakeFrames();
  show_at_ = took_all ? ShowUnfinished(held_up) : 0;
  if (MonotonicSeconds() >= continue_at_) ContinueDriver();
  PumpAll();
  AgeAll();
  TellTaken();
}

// Time in which we were stopped, or the machine slept, is no time that a reader has let go by.
void Console::AgeAll() {
  const double now = MonotonicSeconds();
  const double awake = std::min(now - std::exchange(turned_at_, now), 2 * kLookS);
  if (!ending_) return;
  for (ConsoleSink* sink : {&out_, &own_err_}) sink->Age(awake, patience_s_);
  if (files_) files_->Age(awake, patience_s_);
}

void Console::PumpAll() {
  for (ConsoleSink* sink : {&out_, &own_err_}) {
    if (const int error = sink->Pump(); error != 0) OnWriteFailed(*sink, error);
  }
  if (!files_ || files_failed_ || files_->failure().empty()) return;
  files_failed_ = true;
  own_err_.printer().Say(absl::StrCat("hvdrun: ", files_->failure(),
                                      "; the job goes on, its output is shown here only\n"));
}

void Console::TellTaken() {
  if (output_told_ == output_came_ || IsFull()) return;
  output_told_ = output_came_;
  Frame frame;
  frame.kind = FrameKind::kOutputTaken;
  frame.number = output_told_;
  Ask(std::move(frame));
}

// In words of the verdict. Nobody is told that a pipe was closed: that is how `| head` ends.
std::vector<std::string> Console::Losses() const {
  std::vector<std::string> losses;
  for (const ConsoleSink* sink : {&out_, &own_err_}) {
    if (sink->lost() == 0 || sink->error() == EPIPE) continue;
    losses.push_back(
        sink->error() != 0
            ? absl::StrCat("cannot write to ", sink->name(), ": ", strerror(sink->error()), "; ",
                           sink->lost(), " bytes of output are lost")
            : absl::StrCat(sink->lost(), " bytes of output were not taken by the reader of ",
                           sink->name(), " and are lost"));
  }
  if (files_ && !files_->failure().empty()) losses.push_back(files_->failure());
  return losses;
}

void Console::AnswerDrain() {
  drain_asked_ = false;
  for (std::string& loss : Losses()) {
    Frame lost;
    lost.kind = FrameKind::kOutputLost;
    lost.text = std::move(loss);
    Ask(std::move(lost));
  }
  Frame drained;
  drained.kind = FrameKind::kDrained;
  Ask(std::move(drained));
}

// Lines without an end, prompts for one. `held_up`: we do not take what the driver has for us.
// Returns when to look again.
double Console::ShowUnfinished(bool held_up) {
  double next = kNever;
  for (ConsoleSink* sink : {&out_, &own_err_}) {
    if (held_up) sink->printer().WaitAnew();
    if (!sink->open() || held_up) continue;
    next = std::min(next, sink->printer().ShowUnfinished(MonotonicSeconds()));
  }
  return next;
}

// Draws it anew for its seconds. Not from the background, and not before a slow terminal has the
// last one. Returns when to draw again.
double Console::ShowStatus() {
  if (status_.empty()) {
    err_.printer().ShowStatus("");
    return kNever;
  }
  const double now = MonotonicSeconds();
  if (now < status_at_) return status_at_;
  status_at_ = now + kStatusEveryS;
  if (err_.backlog() == 0 && tcgetpgrp(err_.fd()) == getpgrp()) {
    err_.printer().ShowStatus(StatusLine(status_, now - began_, ColumnsOf(err_.fd())));
  }
  return status_at_;
}

void Console::TakeSignals() {
  while (const std::optional<int> signal = signals_.Next()) OnSignal(*signal);
}

// Not by the shell's Ctrl-Z, which is for us alone. When its hosts have given it up the job is
// over, and it must say so.
void Console::OnDriverStopped() {
  siginfo_t child = {};
  if (waitid(P_PID, driver_pid_, &child, WSTOPPED | WCONTINUED | WNOHANG) != 0) return;
  if (child.si_pid != driver_pid_) return;
  continue_at_ =
      child.si_code == CLD_STOPPED ? MonotonicSeconds() + lease_s_ + kLeastPatienceS : kNever;
}

void Console::ContinueDriver() {
  continue_at_ = kNever;
  if (!driver_gone_) kill(driver_pid_, SIGCONT);  // our child, not reaped yet
}

void Console::OnSignal(int signal) {
  if (signal == SIGCHLD) return OnDriverStopped();
  if (signal == SIGINT || signal == SIGTERM) {
    ++interrupts_;
    // The verdict is known, or the person has had enough: the daemons see our end and stop by
    // themselves.
    if (exit_code_) _exit(*exit_code_);
    if (interrupts_ > 2) _exit(signal == SIGINT ? kExitInterrupt : kExitTerm);
    if (interrupts_ > 1 || drain_asked_) {
      ending_ = true;
      patience_s_ = kHurriedPatienceS;
    }
  }
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) ContinueDriver();
  Frame frame;
  frame.kind = FrameKind::kSignal;
  frame.number = signal;
  frame.end = signal == SIGHUP && signals_.TerminalIsGone();
  Ask(std::move(frame));
}

// A few at a time: signals and the keyboard come in between. False: there may be more.
bool Console::TakeFrames() {
  for (int i = 0; i < 16; ++i) {
    Frame frame;
    switch (ReceiveFrame(driver_.get(), &frame)) {
      case FrameResult::kDone:
        OnFrame(frame);
        break;
      case FrameResult::kWouldBlock:
        return true;
      case FrameResult::kGone:
        OnDriverGone();
        return true;
    }
  }
  return false;
}

void Console::OnFrame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kOutput:
      return OnOutput(frame);
    case FrameKind::kNotice:
      return err_.printer().Say(frame.text);
    case FrameKind::kEnding:
      ending_ = true;
      return;
    case FrameKind::kDrain:
      ending_ = drain_asked_ = true;
      return;
    case FrameKind::kStdinRoom:
      stdin_room_ = frame.number;
      return;
    case FrameKind::kStatus:
      status_ = frame.text;
      return;
    case FrameKind::kFinal:
      ending_ = true;
      exit_code_ = static_cast<int>(frame.number);
      verdict_ = frame.text;
      return;
    default:
      return;
  }
}

void Console::OnOutput(const Frame& frame) {
  output_came_ += frame.text.size();
  if (files_) files_->Put(frame.index, frame.is_stderr, frame.text, frame.end);
  ConsoleSink& sink = frame.is_stderr ? err_ : out_;
  if (!sink.open()) return sink.Lose(frame.text.size());
  sink.printer().Print(frame.index, frame.is_stderr, frame.text, frame.end);
  if (frame.number > 0) sink.printer().Skipped(frame.index, frame.is_stderr, frame.number);
}

void Console::OnDriverGone() {
  driver_gone_ = true;
  ending_ = true;
  drain_asked_ = false;
  if (exit_code_) return;
  int status = 0;
  waitpid(driver_pid_, &status, 0);
  exit_code_ = kExitLauncher;
  verdict_ =
      absl::StrCat("hvdrun: its driver process ", DescribeEnd(status),
                   "; without it every host stops its ranks\n  exit code ", kExitLauncher, "\n");
}

void Console::ReadStdin() {
  Frame frame;
  frame.kind = FrameKind::kStdin;
  frame.text.resize(std::min<uint64_t>(stdin_room_ - stdin_read_, kMaxFrameText));
  const ssize_t got = read(STDIN_FILENO, frame.text.data(), frame.text.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // EIO: we went to the background between the look and the read.
  if (got < 0 && errno == EIO && stdin_is_terminal_ && !signals_.TerminalIsGone()) return;
  frame.text.resize(std::max<ssize_t>(got, 0));
  frame.end = got <= 0;
  stdin_open_ = got > 0;
  stdin_read_ += frame.text.size();
  if (stdin_is_terminal_ && absl::EndsWith(frame.text, "\n")) {
    for (ConsoleSink* sink : {&out_, &own_err_}) sink->printer().EnterPressed();
  }
  Ask(std::move(frame));
}

void Console::OnWriteFailed(const ConsoleSink& sink, int error) {
  if (&sink == &own_err_) return;
  if (error == EPIPE) {
    Frame frame;
    frame.kind = FrameKind::kOutputGone;
    return Ask(std::move(frame));
  }
  own_err_.printer().Say(absl::StrCat("hvdrun: cannot write to stdout: ", strerror(error),
                                      "; the job goes on, its output is lost (--output-filename "
                                      "DIR keeps it in files)\n"));
}

void Console::Ask(Frame frame) {
  asked_.push_back(std::move(frame));
  SendAsked();
}

void Console::SendAsked() {
  while (!asked_.empty() && !driver_gone_) {
    const FrameResult result = SendFrame(driver_.get(), asked_.front());
    if (result == FrameResult::kWouldBlock) return;
    asked_.pop_front();
  }
}

}  // namespace

int RunConsole(const RunOptions& options, Descriptor driver, pid_t driver_pid) {
  try {
    return Console(options, std::move(driver), driver_pid).Run();
  } catch (const std::system_error& error) {
    fprintf(stderr,
            "hvdrun: its console process gets no more threads or descriptors from this machine "
            "(%s); raise the limit of processes (ulimit -u, the cgroup's pids.max), of open files "
            "(ulimit -n) or of memory (ulimit -v)\n  exit code %d\n",
            error.code().message().c_str(), kExitLauncher);
    return kExitLauncher;
  }
}

}  // namespace hvd
