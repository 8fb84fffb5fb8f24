// SPDX-License-Identifier: Apache-2.0
#include "base/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace hvd {
namespace {

uint64_t Key(int fd, uint32_t generation) {
  return static_cast<uint64_t>(generation) << 32 | static_cast<uint32_t>(fd);
}

}  // namespace

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Without these two nothing can be supervised; a daemon that cannot wait must not start.
  if (!epoll_.valid() || !wake_.valid()) abort();
  Watch(wake_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count;
    [[maybe_unused]] const ssize_t n = read(wake_.get(), &count, sizeof(count));
    RunPosted();
  });
}

void Loop::Watch(int fd, uint32_t events, OnReady on_ready) {
  thread_.AssertHeld();
  const uint32_t generation = ++generation_;
  watched_[fd] = std::make_shared<Watched>(Watched{std::move(on_ready), generation});
  epoll_event event{};
  event.events = events;
  event.data.u64 = Key(fd, generation);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) watched_.erase(fd);
}

void Loop::Change(int fd, uint32_t events) {
  thread_.AssertHeld();
  const auto found = watched_.find(fd);
  if (found == watched_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = Key(fd, found->second->generation);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::Forget(int fd) {
  thread_.AssertHeld();
  if (watched_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::At(TimePoint when, Call call) {
  thread_.AssertHeld();
  const TimerId id{when, ++timer_number_};
  timers_.emplace(id, std::move(call));
  return id;
}

void Loop::ContinueWhenDue(Clock::duration overdue) {
  thread_.AssertHeld();
  continue_timer_.emplace();
  overdue_ = overdue;
}

void Loop::Post(Call call) {
  {
    const MutexLock lock(&mutex_);
    posted_.push_back(std::move(call));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.get(), &one, sizeof(one));
}

void Loop::Quit() {
  Post([this] {
    thread_.AssertHeld();
    quit_ = true;
  });
}

void Loop::Run() {
  thread_.AssertHeld();
  std::array<epoll_event, 64> events;
  quit_ = false;
  while (!quit_) {
    SetContinueTimer();
    const int n = epoll_wait(epoll_.get(), events.data(), events.size(), MillisecondsToNext());
    for (int i = 0; i < n && !quit_; ++i) {
      const uint64_t key = events[i].data.u64;
      const auto found = watched_.find(static_cast<int>(key & 0xffffffff));
      // A descriptor forgotten earlier in this batch may have come back under the same number.
      if (found == watched_.end() || found->second->generation != key >> 32) continue;
      const std::shared_ptr<Watched> watched = found->second;
      watched->on_ready(events[i].events);
    }
    if (!quit_) RunTimers();
  }
}

void Loop::RunPosted() {
  std::vector<Call> calls;
  {
    const MutexLock lock(&mutex_);
    calls.swap(posted_);
  }
  for (Call& call : calls) call();
}

void Loop::RunTimers() {
  const TimePoint now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const Call call = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    call();
  }
}

void Loop::SetContinueTimer() {
  if (!continue_timer_.has_value()) return;
  const TimePoint next = timers_.empty() ? TimePoint::max() : timers_.begin()->first.first;
  continue_timer_->Set(next < TimePoint::max() - overdue_ ? next + overdue_ : TimePoint::max());
}

int Loop::MillisecondsToNext() const {
  if (timers_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, int64_t{3600} * 1000));
}

}  // namespace hvd
