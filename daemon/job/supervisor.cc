// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/supervisor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <utility>

#include "base/process_end.h"
#include "daemon/shim/process_tree.h"
#include "daemon/watch/rank_table.h"
#include "proto/deadlines.h"

namespace hvd {
namespace {

// While hvdd lives, a shim ends by itself for one reason.
std::string DescribeShimEnd(int status) {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return DescribeEnd(status);
  return "had not heard its hvdd for the length of the lease: hvdd was paused (stopped, or given "
         "no time by this machine)";
}

}  // namespace

Supervisor::Supervisor(ShimProcess shim, Loop* loop, Handlers handlers)
    : shim_(std::move(shim)),
      channel_(std::move(shim_.channel)),
      loop_(loop),
      handlers_(std::move(handlers)) {
  loop_->Watch(channel_->fd(), EPOLLIN, [this](uint32_t) { OnReadable(); });
}

void Supervisor::OnReadable() {
  ShimReport report{};
  std::vector<Descriptor> fds;
  while (channel_.has_value()) {
    switch (channel_->Receive(&report, &fds)) {
      case ShimChannel::Got::kRecord:
        handlers_.on_report(report);
        break;
      case ShimChannel::Got::kNothing:
        return;
      case ShimChannel::Got::kEnd: {
        loop_->Forget(channel_->fd());
        channel_.reset();
        int status = 0;
        waitpid(shim_.pid, &status, 0);
        return handlers_.on_lost(DescribeShimEnd(status));
      }
    }
  }
}

// A failed send needs no word of its own: the shim's end of file follows.
void Supervisor::Ask(ShimRequest request, const std::vector<int>& fds) {
  if (channel_.has_value()) channel_->Ask(request, fds);
}

void Supervisor::Spawn(int slot, const std::vector<int>& fds) {
  ShimRequest request{ShimAsk::kSpawn};
  request.slot = slot;
  Ask(request, fds);
}

void Supervisor::Signal(int slot, int signal) {
  ShimRequest request{ShimAsk::kSignalWorker};
  request.slot = slot;
  request.signal = signal;
  Ask(request);
}

void Supervisor::Term(int slot) {
  ShimRequest request{ShimAsk::kSignalWorker};
  request.slot = slot;
  request.signal = SIGTERM;
  request.tree = 1;
  Ask(request);
}

void Supervisor::End() {
  if (!channel_.has_value()) return;
  loop_->Forget(channel_->fd());
  channel_.reset();  // its end of file
  const Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, shim_.pid, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (pidfd.valid() && poll(&ended, 1, kShimEndPatience.count()) == 1)
    waitpid(shim_.pid, nullptr, 0);
}

void Supervisor::TermLeftovers() { Ask({ShimAsk::kTermLeftovers}); }
void Supervisor::KillAll() { Ask({ShimAsk::kKillAll}); }
void Supervisor::CountAll() { Ask({ShimAsk::kCountAll}); }

void Supervisor::LeaseChanged() { Ask({ShimAsk::kLease}); }

int Supervisor::Sweep(const std::string& mark) {
  if (!shim_.cgroup.empty()) EndCgroup(shim_.cgroup);
  const TimePoint patience = Clock::now() + kShimEndPatience;
  int left = 0;
  do {
    // What the shim held has come to this process, which is a subreaper too.
    FreezeAndKill(getpid(), mark);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    left = CountLiving(getpid(), mark);
    if (left != 0) poll(nullptr, 0, 5);
  } while (left != 0 && Clock::now() < patience);
  return left;
}

}  // namespace hvd
