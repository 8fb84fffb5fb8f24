// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/poll.h"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace hvd::cli {
namespace {

constexpr double kLongestS = 3600;

}  // namespace

DriverPoll::DriverPoll() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void DriverPoll::Watch(const Wish& wish, DriverSource source, int host) {
  epoll_event event = {};
  event.events = wish.events;
  event.data.u64 = (static_cast<uint64_t>(source) << 32) | static_cast<uint32_t>(host);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wish.fd, &event) != 0 && errno == EEXIST) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, wish.fd, &event);
  }
}

void DriverPoll::Forget(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::vector<DriverPoll::Ready> DriverPoll::Wait(double seconds) {
  epoll_event events[32];
  const int timeout = static_cast<int>(std::ceil(std::min(seconds, kLongestS) * 1000));
  const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout);
  std::vector<Ready> ready;
  for (int i = 0; i < count; ++i) {
    ready.push_back({static_cast<DriverSource>(events[i].data.u64 >> 32),
                     static_cast<int>(events[i].data.u64 & 0xffffffff), events[i].events});
  }
  return ready;
}

}  // namespace hvd::cli
