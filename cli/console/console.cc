// SPDX-License-Identifier: Apache-2.0
#include "cli/console/console.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "cli/console/driver_process.h"
#include "cli/console/repeated_term.h"
#include "cli/console/shown_output.h"
#include "cli/console/signals.h"
#include "cli/console/stdin_reader.h"
#include "cli/link/frame.h"
#include "proto/exit_code.h"

namespace hvd::cli {
namespace {

// A reader of ours that takes nothing for the grace, and for this at least, is stuck …
constexpr double kLeastPatienceS = 1;
// … and when the person hurries.
constexpr double kHurriedPatienceS = 0.2;
constexpr double kLookS = 0.1;  // at what a reader takes, where that matters
constexpr double kNever = std::numeric_limits<double>::infinity();

Descriptor MakeBell() {
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) throw std::system_error(errno, std::generic_category());
  return Descriptor(bell);
}

Frame Word(FrameKind kind) {
  Frame frame;
  frame.kind = kind;
  return frame;
}

// The loop, and when it is over: what the driver, the person and the readers of our output do, each
// goes to the one that it concerns.
class Console {
 public:
  Console(const RunOptions& options, Descriptor driver, pid_t driver_pid)
      : driver_(std::move(driver), driver_pid, options.lease_s),
        patience_s_(std::max(options.grace_s, kLeastPatienceS)),
        repeated_term_(!options.manager.empty()),
        output_(options, bell_.get()),
        stdin_(options.stdin_rank != -1, &signals_) {}

  int Run();

 private:
  double PollSeconds(bool may_read, double status_due) const;
  void Turn();
  void OnSignal(int signal);
  bool TakeFrames();
  void OnFrame(const Frame& frame);
  void OnDriverGone();
  void ReadStdin();
  void PumpAll();
  void AgeAll();
  void TellTaken();
  void TellSkips();
  void AnswerDrain();

  DriverProcess driver_;
  ConsoleSignals signals_;  // before the writers: their threads take no signal
  const Descriptor bell_ = MakeBell();
  double patience_s_;
  RepeatedTerm repeated_term_;
  ShownOutput output_;
  StdinReader stdin_;
  int interrupts_ = 0;
  bool ending_ = false;       // a reader that takes nothing is not waited for without end
  bool drain_asked_ = false;  // the driver waits for all output to be written
  double turned_at_ = MonotonicSeconds();
  std::optional<int> exit_code_;
  std::string verdict_;      // shown when stdout has everything
  double show_at_ = kNever;  // when a line without an end is due
};

int Console::Run() {
  while (true) {
    if (drain_asked_ && output_.done()) AnswerDrain();
    if (exit_code_ && output_.out_done()) {
      output_.Say(std::exchange(verdict_, ""), Tone::kError);
      PumpAll();
      if (output_.err_done()) return *exit_code_;
    }
    Turn();
  }
}

// How long nothing may come; kNever: for ever.
double Console::PollSeconds(bool may_read, double status_due) const {
  // A shell's `fg` tells a running job nothing, so one that wants the keyboard looks twice a
  // second.
  double left = stdin_.wants() && !may_read ? 0.5 : kNever;
  if ((ending_ || output_.hosts_keep_files()) && !output_.done()) left = std::min(left, kLookS);
  const double due = std::min({show_at_, driver_.continue_at(), status_due});
  if (due < kNever) left = std::clamp(due - MonotonicSeconds(), 0.0, left);
  return left;
}

void Console::Turn() {
  const double status_at = output_.ShowStatus();
  PumpAll();
  enum { kSignals, kDriver, kBell, kStdin };
  const bool may_read = stdin_.MayRead();
  const short to_driver = driver_.has_more() ? POLLOUT : 0;
  pollfd waits[] = {
      {signals_.fd(), POLLIN, 0},
      {driver_.fd(), static_cast<short>(POLLIN | to_driver), 0},
      {bell_.get(), POLLIN, 0},
      {stdin_.wants() && may_read ? STDIN_FILENO : -1, POLLIN, 0},
  };
  const double left = PollSeconds(may_read, status_at);
  const int timeout = left < kNever ? static_cast<int>(std::ceil(left * 1000)) : -1;
  if (poll(waits, std::size(waits), timeout) < 0 && errno != EINTR) return;
  if (waits[kSignals].revents) {
    while (const std::optional<int> signal = signals_.Next()) OnSignal(*signal);
  }
  eventfd_t rings;
  if (waits[kBell].revents) eventfd_read(bell_.get(), &rings);
  if (waits[kStdin].revents) ReadStdin();
  if (waits[kDriver].revents & POLLOUT) driver_.SendMore();
  const bool held_up = output_.full();
  const bool took_all = (waits[kDriver].revents & ~POLLOUT) == 0 || TakeFrames();
  show_at_ = took_all ? output_.ShowUnfinished(held_up) : 0;
  if (MonotonicSeconds() >= driver_.continue_at()) driver_.Continue();
  PumpAll();
  AgeAll();
  TellTaken();
  TellSkips();
}

// Time in which we were stopped, or the machine slept, is no time that a reader has let go by.
void Console::AgeAll() {
  const double now = MonotonicSeconds();
  const double awake = std::min(now - std::exchange(turned_at_, now), 2 * kLookS);
  output_.Watch(awake);
  if (ending_) output_.Age(awake, patience_s_);
}

// Nobody reads stdout any more: the driver ends the job quietly.
void Console::PumpAll() {
  if (output_.Pump() == EPIPE) driver_.Send(Word(FrameKind::kOutputGone));
}

void Console::TellTaken() {
  const std::optional<uint64_t> taken = output_.NewlyTaken();
  if (!taken) return;
  Frame frame = Word(FrameKind::kOutputTaken);
  frame.number = *taken;
  driver_.Send(std::move(frame));
}

void Console::TellSkips() {
  const std::optional<uint64_t> skips = output_.NewSkips();
  if (!skips) return;
  Frame frame = Word(FrameKind::kMaySkip);
  frame.number = *skips;
  driver_.Send(std::move(frame));
}

void Console::AnswerDrain() {
  drain_asked_ = false;
  for (std::string& loss : output_.Losses()) {
    Frame lost = Word(FrameKind::kOutputLost);
    lost.text = std::move(loss);
    driver_.Send(std::move(lost));
  }
  driver_.Send(Word(FrameKind::kDrained));
}

void Console::OnSignal(int signal) {
  if (signal == SIGCHLD) return driver_.LookWhetherStopped();
  if (signal == SIGCONT) output_.CursorMoved();
  if (signal == SIGTERM && repeated_term_.Is(MonotonicSeconds())) return;
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
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) driver_.Continue();
  Frame frame = Word(FrameKind::kSignal);
  frame.number = signal;
  frame.end = signal == SIGHUP && signals_.TerminalIsGone();
  driver_.Send(std::move(frame));
}

// A few at a time: signals and the keyboard come in between. False: there may be more.
bool Console::TakeFrames() {
  for (int i = 0; i < 16; ++i) {
    Frame frame;
    switch (driver_.Receive(&frame)) {
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
    case FrameKind::kRank:
      return output_.Name(frame);
    case FrameKind::kOutput:
      return output_.Take(frame);
    case FrameKind::kNotice:
      return output_.Say(frame.text);
    case FrameKind::kEnding:
      ending_ = true;
      return;
    case FrameKind::kDrain:
      ending_ = drain_asked_ = true;
      output_.EndBars();
      return;
    case FrameKind::kStdinRoom:
      return stdin_.SetRoom(frame.number);
    case FrameKind::kStatus:
      return output_.SetStatus(frame.text);
    case FrameKind::kFinal:
      ending_ = true;
      exit_code_ = static_cast<int>(frame.number);
      verdict_ = frame.text;
      return;
    default:
      return;
  }
}

void Console::OnDriverGone() {
  driver_.SetGone();
  ending_ = true;
  output_.EndBars();
  drain_asked_ = false;
  if (exit_code_) return;
  exit_code_ = kExitLauncher;
  verdict_ =
      absl::StrCat("hvdrun: its driver process ", driver_.AwaitEnd(),
                   "; without it every host stops its ranks\n  exit code ", kExitLauncher, "\n");
}

void Console::ReadStdin() {
  std::optional<Frame> piece = stdin_.Read();
  if (!piece) return;
  if (stdin_.IsEnter(*piece)) output_.EnterPressed();
  driver_.Send(*std::move(piece));
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

}  // namespace hvd::cli
