#include "cli/console.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/console_outputs.h"
#include "cli/console_signals.h"
#include "cli/exit_code.h"
#include "cli/frame.h"
#include "cli/output_printer.h"

namespace hvd {
namespace {

// What may wait for a slow reader of ours before we stop taking more from the driver.
constexpr size_t kMaxPending = 256 * 1024;
// A pipe that is writable takes this much without blocking.
constexpr size_t kWriteBytes = 4096;
constexpr double kNever = std::numeric_limits<double>::infinity();

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

class Console {
 public:
  Console(const RunOptions& options, Descriptor driver, pid_t driver_pid)
      : driver_(std::move(driver)),
        driver_pid_(driver_pid),
        out_{STDOUT_FILENO, OutputPrinter(&options.topology, StyleOf(1, options.timestamps))},
        own_err_{STDERR_FILENO, OutputPrinter(&options.topology, StyleOf(2, options.timestamps))},
        err_(OutputsAreOne() ? out_ : own_err_),
        stdin_open_(options.stdin_rank != -1),
        stdin_is_terminal_(isatty(STDIN_FILENO) != 0) {}

  int Run();

 private:
  struct Sink {
    int fd;
    OutputPrinter printer;
    bool gone = false;  // its reader is; what comes is thrown away
  };

  bool WantsStdin() const { return stdin_open_ && stdin_read_ < stdin_room_; }
  bool MayReadStdin() const;
  void Turn();
  void TakeSignals();
  void OnSignal(int signal);
  bool TakeFrames();
  double ShowUnfinished(bool held_up);
  void OnFrame(const Frame& frame);
  void ReadStdin();
  void Flush(Sink* sink);
  void Ask(Frame frame);
  void SendAsked();
  void OnDriverGone();

  Descriptor driver_;
  const pid_t driver_pid_;
  ConsoleSignals signals_;
  Sink out_;
  Sink own_err_;
  Sink& err_;  // out_ where stdout and stderr are one: two queues would cut each other's lines
  std::deque<Frame> asked_;  // for the driver, not sent yet
  bool stdin_open_;
  const bool stdin_is_terminal_;
  uint64_t stdin_room_ = 0;
  uint64_t stdin_read_ = 0;
  int interrupts_ = 0;
  bool driver_gone_ = false;
  std::optional<int> exit_code_;
  std::string verdict_;      // shown when stdout has everything
  double show_at_ = kNever;  // when a line without an end is due
};

// Never from the background: that would stop us, or steal the shell's input.
bool Console::MayReadStdin() const {
  return !stdin_is_terminal_ || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int Console::Run() {
  while (true) {
    if (exit_code_ && out_.printer.pending().empty()) {
      err_.printer.Say(std::exchange(verdict_, ""));
      if (err_.printer.pending().empty()) return *exit_code_;
    }
    Turn();
  }
}

void Console::Turn() {
  const bool full =
      out_.printer.pending().size() > kMaxPending || err_.printer.pending().size() > kMaxPending;
  const short from_driver = full || driver_gone_ ? 0 : POLLIN;
  const short to_driver = asked_.empty() || driver_gone_ ? 0 : POLLOUT;
  enum { kSignals, kDriver, kOut, kErr, kStdin };
  pollfd waits[] = {
      {signals_.fd(), POLLIN, 0},
      {driver_gone_ || (from_driver | to_driver) == 0 ? -1 : driver_.get(),
       static_cast<short>(from_driver | to_driver), 0},
      {out_.printer.pending().empty() ? -1 : out_.fd, POLLOUT, 0},
      {own_err_.printer.pending().empty() ? -1 : own_err_.fd, POLLOUT, 0},
      {WantsStdin() && MayReadStdin() ? STDIN_FILENO : -1, POLLIN, 0},
  };
  // A shell's `fg` tells a running job nothing, so one that wants the keyboard looks twice a
  // second.
  double left = WantsStdin() && waits[kStdin].fd < 0 ? 0.5 : kNever;
  if (show_at_ < kNever) left = std::clamp(show_at_ - Now(), 0.0, left);
  const int timeout = left < kNever ? static_cast<int>(std::ceil(left * 1000)) : -1;
  if (poll(waits, std::size(waits), timeout) < 0 && errno != EINTR) return;
  if (waits[kSignals].revents) TakeSignals();
  if (waits[kOut].revents) Flush(&out_);
  // Both may be one terminal by two names, whose last room the first write has taken.
  if (waits[kErr].revents && IsWritable(own_err_.fd)) Flush(&own_err_);
  if (waits[kStdin].revents) ReadStdin();
  if (waits[kDriver].revents & POLLOUT) SendAsked();
  const bool took_all = (waits[kDriver].revents & ~POLLOUT) == 0 || TakeFrames();
  show_at_ = took_all ? ShowUnfinished(full) : 0;
}

// Lines without an end, prompts for one. `held_up`: we do not take what the driver has for us.
// Returns when to look again.
double Console::ShowUnfinished(bool held_up) {
  double next = kNever;
  for (Sink* sink : {&out_, &own_err_}) {
    if (held_up) sink->printer.WaitAnew();
    if (sink->gone || held_up) continue;
    next = std::min(next, sink->printer.ShowUnfinished(Now()));
  }
  return next;
}

void Console::TakeSignals() {
  while (const std::optional<int> signal = signals_.Next()) OnSignal(*signal);
}

void Console::OnSignal(int signal) {
  if (signal == SIGINT || signal == SIGTERM) {
    ++interrupts_;
    // The verdict is known, or the person has had enough: the daemons see our end and stop by
    // themselves.
    if (exit_code_) _exit(*exit_code_);
    if (interrupts_ > 2) _exit(signal == SIGINT ? kExitInterrupt : kExitTerm);
  }
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
    case FrameKind::kOutput: {
      Sink& sink = frame.is_stderr ? err_ : out_;
      if (sink.gone) return;
      sink.printer.Print(frame.index, frame.is_stderr, frame.text, frame.end);
      if (frame.number > 0) sink.printer.Skipped(frame.index, frame.is_stderr, frame.number);
      return;
    }
    case FrameKind::kNotice:
      if (!err_.gone) err_.printer.Say(frame.text);
      return;
    case FrameKind::kStdinRoom:
      stdin_room_ = frame.number;
      return;
    case FrameKind::kFinal:
      exit_code_ = static_cast<int>(frame.number);
      if (!err_.gone) verdict_ = frame.text;
      return;
    default:
      return;
  }
}

void Console::OnDriverGone() {
  driver_gone_ = true;
  if (exit_code_) return;
  int status = 0;
  waitpid(driver_pid_, &status, 0);
  std::string how = absl::StrCat("exited with code ", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) {
    const char* name = sigdescr_np(WTERMSIG(status));
    how = absl::StrCat("was killed by signal ", WTERMSIG(status), " (", name ? name : "?", ")");
  }
  exit_code_ = kExitLauncher;
  verdict_ =
      absl::StrCat("hvdrun: its driver process ", how,
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
    for (Sink* sink : {&out_, &own_err_}) sink->printer.EnterPressed();
  }
  Ask(std::move(frame));
}

void Console::Flush(Sink* sink) {
  const std::string_view pending = sink->printer.pending();
  const ssize_t written = write(sink->fd, pending.data(), std::min(pending.size(), kWriteBytes));
  if (written >= 0) return sink->printer.Written(written);
  if (errno == EINTR || errno == EAGAIN) return;
  const int error = errno;
  sink->printer.Written(pending.size());
  sink->gone = true;
  if (sink == &own_err_) return;
  if (error == EPIPE) {
    Frame frame;
    frame.kind = FrameKind::kOutputGone;
    return Ask(std::move(frame));
  }
  if (err_.gone) return;
  err_.printer.Say(absl::StrCat("hvdrun: cannot write to stdout: ", strerror(error),
                                "; the job goes on, its output is lost (--output-filename DIR "
                                "keeps it in files)\n"));
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
  return Console(options, std::move(driver), driver_pid).Run();
}

}  // namespace hvd
