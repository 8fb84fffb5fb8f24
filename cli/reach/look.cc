// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/look.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "cli/reach/execute.h"
#include "cli/reach/look_keeper.h"

namespace hvd::cli {
namespace {

constexpr double kKeeperS = 1;  // for the keeper, to end what it keeps
constexpr size_t kMaxWords = 4096;
constexpr size_t kPiece = size_t{64} << 10;

bool MakePipe(Descriptor* read_end, Descriptor* write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end->Reset(ends[0]);
  write_end->Reset(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return true;
}

void Signal(const Descriptor& pidfd, int signal) {
  if (pidfd.valid()) syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

// Gives what can be read now to `take`; closes the descriptor at its end.
template <typename Take>
void ReadAll(Descriptor* from, Take take) {
  std::array<char, kPiece> piece;
  while (from->valid()) {
    const ssize_t got = read(from->get(), piece.data(), piece.size());
    if (got > 0) {
      take(absl::string_view(piece.data(), got));
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      from->Reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

}  // namespace

absl::string_view LookProcess::Start(Execution command, double bound_s) {
  Descriptor output, errors;
  const Descriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return "/dev/null";
  if (!MakePipe(&output_, &output) || !MakePipe(&errors_, &errors)) return "pipe";
  command.input = null.get();
  command.output = output.get();
  command.errors = errors.get();
  const pid_t own = getpid();
  const pid_t keeper = fork();
  if (keeper < 0) return "fork";
  if (keeper == 0) KeepLook(command, own);
  pidfd_ = HoldChild(keeper);
  if (!pidfd_.valid()) return "pidfd_open";
  keeper_ = keeper;
  end_ = LookEnd::kEnded;
  due_ = MonotonicSeconds() + bound_s;
  text_.clear();
  words_.clear();
  return {};
}

void LookProcess::AddWaits(std::vector<pollfd>* waits) const {
  for (const Descriptor* each : {&pidfd_, &output_, &errors_}) {
    if (running() && each->valid()) waits->push_back({each->get(), POLLIN, 0});
  }
}

std::vector<Frame> LookProcess::Turn(double now) {
  if (!running()) return {};
  int status = 0;
  const pid_t reaped = waitpid(keeper_, &status, WNOHANG);
  TakeOutput();  // after its end is known, so that nothing of it is missed
  TakeErrors();
  if (reaped == keeper_ || (reaped < 0 && errno == ECHILD)) return Ended(status);
  if (now >= due_) Overdue(now);
  return {};
}

void LookProcess::TakeOutput() {
  ReadAll(&output_, [this](absl::string_view piece) {
    text_.append(piece.data(), std::min(piece.size(), kMaxLookText + 1 - text_.size()));
  });
  if (text_.size() <= kMaxLookText || end_ != LookEnd::kEnded) return;
  end_ = LookEnd::kTooMuch;
  End();
}

void LookProcess::TakeErrors() {
  ReadAll(&errors_, [this](absl::string_view piece) {
    words_.append(piece.data(), piece.size());
    if (words_.size() > kMaxWords) words_.erase(0, words_.size() - kMaxWords);
  });
}

void LookProcess::Overdue(double now) {
  if (end_ != LookEnd::kEnded) {
    Signal(pidfd_, SIGKILL);  // the keeper cannot end what it keeps
    due_ = std::numeric_limits<double>::infinity();
    return;
  }
  end_ = LookEnd::kTooLong;
  End();
  due_ = now + kKeeperS;
}

void LookProcess::End() {
  Signal(pidfd_, SIGTERM);
  due_ = std::min(due_, MonotonicSeconds() + kKeeperS);
}

void LookProcess::Kill() {
  if (!running()) return;
  Signal(pidfd_, SIGKILL);
  waitpid(keeper_, nullptr, 0);
  Ended(0);
}

std::vector<Frame> LookProcess::Ended(int wait_status) {
  pidfd_.Reset();
  output_.Reset();
  errors_.Reset();
  std::vector<Frame> frames;
  const bool whole = end_ == LookEnd::kEnded;
  for (size_t at = 0; whole && at < text_.size(); at += kMaxFrameText) {
    Frame& frame = frames.emplace_back();
    frame.kind = FrameKind::kLookText;
    frame.text = text_.substr(at, kMaxFrameText);
  }
  Frame& ended = frames.emplace_back();
  ended.kind = FrameKind::kLookEnded;
  ended.index = static_cast<uint32_t>(end_);
  ended.number = wait_status;
  ended.text = std::move(words_);
  text_ = std::string();
  words_.clear();
  return frames;
}

}  // namespace hvd::cli
