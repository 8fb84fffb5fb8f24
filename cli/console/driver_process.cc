// SPDX-License-Identifier: Apache-2.0
#include "cli/console/driver_process.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/process_end.h"
#include "proto/deadlines.h"

namespace hvd::cli {

void DriverProcess::Send(Frame frame) {
  asked_.push_back(std::move(frame));
  SendMore();
}

void DriverProcess::SendMore() {
  while (!asked_.empty() && !gone_) {
    const FrameResult result = SendFrame(link_.get(), asked_.front());
    if (result == FrameResult::kWouldBlock) return;
    asked_.pop_front();
  }
}

// Not by the shell's Ctrl-Z, which is for us alone. When its hosts have given it up the job is
// over, and it must say so.
void DriverProcess::LookWhetherStopped() {
  siginfo_t child = {};
  if (waitid(P_PID, pid_, &child, WSTOPPED | WCONTINUED | WNOHANG) != 0) return;
  if (child.si_pid != pid_) return;
  continue_at_ = child.si_code == CLD_STOPPED
                     ? MonotonicSeconds() + lease_s_ + SecondsOf(kStoppedDriverMargin)
                     : std::numeric_limits<double>::infinity();
}

void DriverProcess::Continue() {
  continue_at_ = std::numeric_limits<double>::infinity();
  if (!gone_) kill(pid_, SIGCONT);  // our child, not reaped yet
}

std::string DriverProcess::AwaitEnd() {
  int status = 0;
  waitpid(pid_, &status, 0);
  return DescribeEnd(status);
}

}  // namespace hvd::cli
