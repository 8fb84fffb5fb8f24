// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/supervisor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/process_end.h"
#include "daemon/job/rank_table.h"
#include "daemon/shim/process_tree.h"
#include "proto/deadlines.h"

namespace hvd::daemon {
namespace {

constexpr char kUnanswered[] = "did not answer (stopped, or held by a debugger?) and was killed";

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
  channel_->BoundAsks(kAskPatience);
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
      case ShimChannel::Got::kEnd:
        return Lose(kShimEndPatience);
    }
  }
}

void Supervisor::Lose(std::chrono::milliseconds patience) {
  loop_->Forget(channel_->fd());
  channel_.reset();
  int status = 0;
  const bool ended = AwaitShim(patience, &status);
  handlers_.on_lost(killed_ ? kUnanswered : ended ? DescribeShimEnd(status) : "is going");
}

// Not longer: what dies with it may be held by the kernel.
bool Supervisor::AwaitShim(std::chrono::milliseconds patience, int* status) {
  const Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, shim_.pid, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  // A debugger may have it yet, and the kernel then keeps its status for that one.
  return pidfd.valid() && poll(&ended, 1, static_cast<int>(patience.count())) == 1 &&
         waitpid(shim_.pid, status, WNOHANG) == shim_.pid;
}

// A shim that is stopped is continued, so that it hears what it is asked. Its end of file tells of
// requests that fail. It is our own child, not reaped yet: the number is still its.
void Supervisor::Ask(ShimRequest request, const std::vector<int>& fds) {
  if (!channel_.has_value() || killed_) return;
  kill(shim_.pid, SIGCONT);
  if (channel_->Ask(request, fds) || errno != EAGAIN) return;
  killed_ = true;  // at once: more may be asked of it before the loop turns
  kill(shim_.pid, SIGKILL);
  loop_->Post([this] { KillShim(); });
}

void Supervisor::KillShim() {
  if (!channel_.has_value()) return;
  killed_ = true;
  kill(shim_.pid, SIGKILL);
  Lose(kKilledShimPatience);
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
  kill(shim_.pid, SIGCONT);
  int status = 0;
  if (AwaitShim(kShimEndPatience, &status)) return;
  kill(shim_.pid, SIGKILL);
  AwaitShim(kKilledShimPatience, &status);
  if (!shim_.cgroup.empty()) EndCgroup(shim_.cgroup);
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
    // The processes that the shim held have come to this one, which is a subreaper too.
    FreezeAndKill(getpid(), mark);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    left = CountLiving(getpid(), mark);
    if (left != 0) poll(nullptr, 0, 5);
  } while (left != 0 && Clock::now() < patience);
  return left;
}

}  // namespace hvd::daemon
