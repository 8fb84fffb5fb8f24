// SPDX-License-Identifier: Apache-2.0
// Tells which of a transport's descriptors are ready, and is its clock: an epoll whose descriptor
// becomes readable when one of them is, or when a time has come. Guarded by the transport's mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/transport/tcp/socket.h"

namespace hvd::rt {

using Clock = std::chrono::steady_clock;

// Something with a descriptor in the poller.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual void OnReady(uint32_t events) = 0;  // epoll's
};

class Poller {
 public:
  absl::Status Open();
  int fd() const { return epoll_.fd(); }

  // Watches the socket until Close closes it. The watcher must be buried then, since it may be
  // among those that are ready. A second time: for another watcher, or other events.
  absl::Status Watch(const Socket& socket, uint32_t events, Watched* watched);
  // Closes it for every process: a forked child has it too.
  void Close(Socket* socket);
  // Destroys it when nothing can call it any more.
  void Bury(std::unique_ptr<Watched> watched) { buried_.push_back(std::move(watched)); }

  // Calls those that are ready, without waiting. False: nothing was.
  bool Run();
  // The descriptor is readable from `when` on, until the next WakeAt; max(): never.
  void WakeAt(Clock::time_point when);

 private:
  Socket epoll_, timer_;
  Clock::time_point wake_at_ = Clock::time_point::max();
  std::vector<std::unique_ptr<Watched>> buried_;
};

}  // namespace hvd::rt
