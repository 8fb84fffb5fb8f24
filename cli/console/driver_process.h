// SPDX-License-Identifier: Apache-2.0
// The console's child, the driver: what is to be sent to it, and whether it runs, is stopped or is
// gone. Used by the console's one thread.
#pragma once

#include <sys/types.h>

#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "cli/link/frame.h"

namespace hvd::cli {

class DriverProcess {
 public:
  // `lease_s`: how long its hosts live without hearing it.
  DriverProcess(Descriptor link, pid_t pid, double lease_s)
      : link_(std::move(link)), pid_(pid), lease_s_(lease_s) {}

  int fd() const { return gone_ ? -1 : link_.get(); }
  bool gone() const { return gone_; }
  FrameResult Receive(Frame* frame) { return ReceiveFrame(link_.get(), frame); }

  // Sends it, at once or, in order, as soon as there is room.
  void Send(Frame frame);
  bool has_more() const { return !asked_.empty(); }
  void SendMore();

  // A child of ours was stopped or continued.
  void LookWhetherStopped();
  // When it has been stopped for too long, in seconds of the monotonic clock; infinity: it runs.
  double continue_at() const { return continue_at_; }
  void Continue();

  // Its end of the link is closed.
  void SetGone() { gone_ = true; }
  // In words. Waits for it.
  std::string AwaitEnd();

 private:
  const Descriptor link_;
  const pid_t pid_;
  const double lease_s_;
  std::deque<Frame> asked_;  // not sent yet
  bool gone_ = false;
  double continue_at_ = std::numeric_limits<double>::infinity();
};

}  // namespace hvd::cli
