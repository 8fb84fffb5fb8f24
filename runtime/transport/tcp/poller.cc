// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/poller.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace hvd::rt {

absl::Status Poller::Open() {
  epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.open()) return absl::ErrnoToStatus(errno, "making an epoll for connections");
  timer_ = Socket(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_.open()) return absl::ErrnoToStatus(errno, "making a timer for connections");
  return Watch(timer_, EPOLLIN, nullptr);
}

absl::Status Poller::Watch(const Socket& socket, uint32_t events, Watched* watched) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = watched;
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, socket.fd(), &event) == 0) return absl::OkStatus();
  if (errno == EEXIST && epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, socket.fd(), &event) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "watching a connection");
}

void Poller::Close(Socket* socket) {
  if (!socket->open()) return;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, socket->fd(), nullptr);
  shutdown(socket->fd(), SHUT_RDWR);
  socket->Close();
}

bool Poller::Run() {
  constexpr int kMost = 32;
  epoll_event ready[kMost];
  const int count = epoll_wait(epoll_.fd(), ready, kMost, 0);
  for (int i = 0; i < count; ++i) {
    auto* watched = static_cast<Watched*>(ready[i].data.ptr);
    if (watched == nullptr) continue;  // the clock: who has a time looks at it
    const auto is_it = [watched](const auto& one) { return one.get() == watched; };
    if (std::none_of(buried_.begin(), buried_.end(), is_it)) watched->OnReady(ready[i].events);
  }
  buried_.clear();
  return count > 0;
}

void Poller::WakeAt(Clock::time_point when) {
  if (when == wake_at_) return;
  wake_at_ = when;
  itimerspec time = {};
  if (when != Clock::time_point::max()) {
    const auto ns = std::chrono::nanoseconds(when.time_since_epoch()).count();
    time.it_value = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
    if (ns <= 0) time.it_value.tv_nsec = 1;
  }
  timerfd_settime(timer_.fd(), TFD_TIMER_ABSTIME, &time, nullptr);
}

}  // namespace hvd::rt
