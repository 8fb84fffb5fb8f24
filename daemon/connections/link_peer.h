// SPDX-License-Identifier: Apache-2.0
// One connection of a worker: its socket, who is behind it, and what waits to be sent. Thin.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "daemon/connections/frames.h"
#include "daemon/processes/process_end.h"

namespace hvd::daemon {

class LinkPeer {
 public:
  // Takes the socket; asks the kernel who made its other end.
  explicit LinkPeer(Descriptor socket);

  int fd() const { return socket_.get(); }
  int pid() const { return pid_; }  // as hvdd sees it
  // Same user, and the kernel could still name the process.
  bool trusted() const { return trusted_; }
  // Waits up to `milliseconds` for the process to end.
  bool Ended(int milliseconds) const;
  // How, if that can be known; see process_end.h.
  std::optional<int> end_status() const { return EndStatus(pidfd_.get(), pid_); }

  // Reads what is there. False: the link is closed or broken, or holds more descriptors than any
  // message takes.
  bool Read();
  bool NextMessage(std::string* message) { return cutter_.Next(message); }
  // For whoever goes on with this connection: its socket, and what has come behind the messages.
  Descriptor TakeSocket() { return std::move(socket_); }
  std::string TakeRest() { return cutter_.TakeRest(); }
  // Whether something came that is none of ours: a message too long, or more descriptors than any
  // takes.
  bool broken() const { return cutter_.broken() || laden_; }
  // The descriptors that came with what was read.
  std::vector<Descriptor> TakeDescriptors() { return std::exchange(came_, {}); }

  // `keep` holds what the descriptors belong to until they are sent.
  void Send(std::string_view message, std::vector<int> fds, std::shared_ptr<const void> keep);
  // Sends what fits. False: the link is broken.
  bool Flush();
  // Flush has stopped because more descriptors are under way than this user may have (the kernel's
  // ETOOMANYREFS): try again when workers have taken some.
  bool crowded() const { return crowded_; }
  bool has_backlog() const { return !out_.empty(); }
  // More waits to be sent than a worker that reads ever leaves.
  bool deaf() const;

  int slot = -1;  // that it speaks for; -1: has not claimed yet

 private:
  struct Waiting {
    std::string bytes;
    std::vector<int> fds;
    std::shared_ptr<const void> keep;
  };

  Descriptor socket_;
  Descriptor pidfd_;
  int pid_ = -1;
  bool trusted_ = false;
  FrameCutter cutter_;
  std::vector<Descriptor> came_;
  bool laden_ = false;
  bool crowded_ = false;
  std::deque<Waiting> out_;
};

}  // namespace hvd::daemon
