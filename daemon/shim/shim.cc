// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>

#include "daemon/shim/process_tree.h"
#include "daemon/shim/way_back.h"
#include "proto/deadlines.h"

namespace hvd::daemon {
namespace {

constexpr auto kKillAgain = std::chrono::milliseconds(10);
constexpr auto kSweepAgain = std::chrono::milliseconds(20);

void SetText(ShimReport* report, const std::string& text) {
  snprintf(report->text, sizeof(report->text), "%s", text.c_str());
}

// "HVD_MEMBER_MARK=…" of a job whose members come and go: what one leaves is not for the next.
std::string MemberMark(const SpawnOrder& order) {
  const auto found = std::find_if(
      order.environment.begin(), order.environment.end(),
      [](const std::string& entry) { return entry.rfind("HVD_MEMBER_MARK=", 0) == 0; });
  return found == order.environment.end() ? "" : *found;
}

Descriptor OpenChildSignal() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return Descriptor(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

Shim::Shim(ShimChannel channel, Containment containment, Descriptor outer_fdinfo,
           const LeaseWord* lease)
    : channel_(std::move(channel)),
      containment_(std::move(containment)),
      outer_fdinfo_(std::move(outer_fdinfo)),
      child_signal_(OpenChildSignal()),
      lease_(lease),
      claimed_(
          &loop_, [this](const ShimReport& report) { TellOfClaimed(report); }, [this] { Reap(); }) {
}

void Shim::Serve() {
  TellReady();
  loop_.ContinueWhenDue(Clock::duration::zero());  // a stopped shim would outlive its lease
  loop_.Watch(channel_.fd(), EPOLLIN, [this](uint32_t) { OnRequests(); });
  loop_.Watch(child_signal_.get(), EPOLLIN, [this](uint32_t) {
    signalfd_siginfo info;
    while (read(child_signal_.get(), &info, sizeof(info)) > 0) {
    }
    Reap();
  });
  loop_.Run();
  EndEverything();
}

void Shim::TellReady() {
  WayBack way = MakeWayBack();
  way_back_ = std::move(way.place);
  ShimReport ready{ShimTell::kReady};
  ready.pid = getpid();
  ready.status = way_back_.get();
  SetText(&ready, containment_.cgroup());
  channel_.Tell(ready, std::move(way.listener));
}

void Shim::OnRequests() {
  ShimRequest request{};
  std::vector<Descriptor> fds;
  while (true) {
    switch (channel_.Receive(&request, &fds)) {
      case ShimChannel::Got::kRecord:
        Handle(request, std::move(fds));
        break;
      case ShimChannel::Got::kNothing:
        channel_.Flush();
        UpdateWatch();
        return;
      case ShimChannel::Got::kEnd:
        EndEverything();
    }
  }
}

void Shim::UpdateWatch() {
  loop_.Change(channel_.fd(), channel_.has_backlog() ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Shim::Handle(const ShimRequest& request, std::vector<Descriptor> fds) {
  switch (request.ask) {
    case ShimAsk::kSpawn:
      return SpawnWorker(request.slot, std::move(fds));
    case ShimAsk::kSignalWorker:
      return SignalWorker(request);
    case ShimAsk::kTermLeftovers:
      stopping_ = true;
      claimed_.GiveUpAwaited();
      TermLeftovers();
      return Reap();  // tells at once if nothing is there
    case ShimAsk::kKillAll:
      return KillAll();
    case ShimAsk::kCountAll: {
      ShimReport report{ShimTell::kSurvivors};
      report.status = containment_.CountLiving(mark_) + claimed_.living();
      return channel_.Tell(report);
    }
    case ShimAsk::kLease:
      return WatchLease();
  }
}

void Shim::SpawnWorker(int slot, std::vector<Descriptor> fds) {
  Worker worker;
  ExecFailure failure{ExecFailure::Step::kDescriptors, EINVAL};
  if (fds.size() != 5 || !OrderFromFd(fds[0].get(), &worker.order) || worker.order.argv.empty()) {
    worker.order.argv = {"?"};
    return TellSpawnFailed(slot, worker, failure);
  }
  for (const std::string& entry : worker.order.environment) {
    if (entry.rfind("HVD_JOB_MARK=", 0) == 0) mark_ = entry;
  }
  if (!worker.order.claim.empty()) {
    return claimed_.Claim(slot, std::move(worker.order), std::move(fds[4]));
  }
  const SpawnFds ends{std::move(fds[1]), std::move(fds[2]), std::move(fds[3]), std::move(fds[4])};
  Spawned spawned = Spawn(worker.order, ends);
  if (spawned.pid < 0) {
    failure = {spawned.failed, errno};
    return TellSpawnFailed(slot, worker, failure);
  }
  worker.pid = spawned.pid;
  worker.outer_pid = OuterPid(spawned.pidfd.get());
  worker.pidfd = std::move(spawned.pidfd);
  worker.exec_end = std::move(spawned.exec_end);
  containment_.Take(worker.pid);
  loop_.Watch(worker.exec_end.get(), EPOLLIN, [this, slot](uint32_t) {
    const auto found = workers_.find(slot);
    if (found != workers_.end() && !FinishExec(slot, &found->second)) workers_.erase(found);
  });
  workers_[slot] = std::move(worker);
  // Recorded: the gate may open.
  [[maybe_unused]] const ssize_t n = write(spawned.gate.get(), "g", 1);
}

void Shim::TellOfClaimed(const ShimReport& report) {
  channel_.Tell(report);
  UpdateWatch();
}

void Shim::TellSpawnFailed(int slot, const Worker& worker, const ExecFailure& failure) {
  ShimReport report{ShimTell::kSpawnFailed};
  report.slot = slot;
  report.pid = worker.outer_pid;
  report.error = failure.error;
  report.status = ExecFailureCode(failure);
  SetText(&report, DescribeExecFailure(failure, worker.order));
  channel_.Tell(report);
  UpdateWatch();
}

bool Shim::FinishExec(int slot, Worker* worker) {
  if (!worker->exec_end.valid()) return true;
  ExecFailure failure;
  const bool failed = read(worker->exec_end.get(), &failure, sizeof(failure)) ==
                      static_cast<ssize_t>(sizeof(failure));
  loop_.Forget(worker->exec_end.get());
  worker->exec_end.Reset();
  if (failed) {
    TellSpawnFailed(slot, *worker, failure);  // its exit will say nothing more
    return false;
  }
  ShimReport report{ShimTell::kStarted};
  report.slot = slot;
  report.pid = worker->outer_pid;
  channel_.Tell(report);
  UpdateWatch();
  return true;
}

void Shim::SignalWorker(const ShimRequest& request) {
  if (claimed_.Signal(request)) {
    stopping_ = stopping_ || request.tree != 0;
    return;
  }
  const auto found = workers_.find(request.slot);
  if (found == workers_.end()) return;
  if (request.tree != 0) {
    stopping_ = true;
    SendSignal(found->second.pidfd.get(), SIGCONT);
  }
  SendSignal(found->second.pidfd.get(), request.signal);
}

std::set<int> Shim::Living() const {
  std::set<int> living;
  for (const auto& [slot, worker] : workers_) living.insert(worker.pid);
  return living;
}

// A look may miss a process in the midst of an exec, which has no environment then. A stop asks
// leftovers before it kills them, so it is left to that.
void Shim::Sweep(const DeadMember& dead, bool again) {
  if (stopping_) return;
  const bool found = KillLeftBy(dead, getpid(), Living()) != 0;
  if (!found && again) return;
  loop_.At(Clock::now() + kSweepAgain, [this, dead, found] { Sweep(dead, !found); });
}

void Shim::TermLeftovers() {
  for (const ProcessFact& fact : Leftovers(ReadProcesses(), getpid(), Living())) {
    if (fact.state == 'Z') continue;
    const Descriptor pidfd = OpenProcess(fact);
    if (!pidfd.valid()) continue;
    SendSignal(pidfd.get(), SIGCONT);
    SendSignal(pidfd.get(), SIGTERM);
  }
}

void Shim::KillAll() {
  stopping_ = killing_ = true;
  claimed_.KillAll();
  containment_.KillAll(mark_);
  Reap();
  if (killing_) {
    loop_.At(Clock::now() + kKillAgain, [this] {
      if (killing_) KillAll();
    });
  }
}

void Shim::Reap() {
  int status;
  int pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) OnExit(pid, status);
  if (pid < 0 && errno == ECHILD && claimed_.empty()) {
    // Init and subreaper alike: no child means no descendant.
    killing_ = false;
    channel_.Tell({ShimTell::kEmpty});
    UpdateWatch();
  } else if (leftovers_due_) {
    TermLeftovers();
  }
  leftovers_due_ = false;
}

void Shim::OnExit(int pid, int status) {
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [pid](const auto& entry) { return entry.second.pid == pid; });
  if (found == workers_.end()) return;  // an adopted orphan
  Worker& worker = found->second;
  if (FinishExec(found->first, &worker)) {
    ShimReport report{ShimTell::kExited};
    report.slot = found->first;
    report.pid = worker.outer_pid;
    report.status = status;
    channel_.Tell(report);
    UpdateWatch();
  }
  const std::string mark = MemberMark(worker.order);
  workers_.erase(found);
  if (!mark.empty()) Sweep({pid, mark}, false);
  leftovers_due_ = leftovers_due_ || stopping_;
}

int Shim::OuterPid(int pidfd) const {
  const Descriptor about(
      openat(outer_fdinfo_.get(), std::to_string(pidfd).c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!about.valid() || read(about.get(), text, sizeof(text) - 1) <= 0) return -1;
  const char* line = strstr(text, "\nPid:");
  int pid = -1;
  if (line != nullptr) sscanf(line, "\nPid: %d", &pid);
  return pid;
}

// hvdd moves the word on without a message; it is looked at when it would have ended.
void Shim::WatchLease() {
  loop_.Cancel(lease_timer_);
  const TimePoint until = lease_->Get();
  if (until <= Clock::now()) EndEverything();
  lease_timer_ = loop_.At(until, [this] { WatchLease(); });
}

void Shim::EndEverything() {
  const TimePoint patience = Clock::now() + kLastKillPatience;
  claimed_.KillNow();
  while (Clock::now() < patience) {
    containment_.KillAll(mark_);
    int pid;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0 && errno == ECHILD) break;
    pollfd child{child_signal_.get(), POLLIN, 0};
    poll(&child, 1, static_cast<int>(kKillAgain.count()));
    signalfd_siginfo info;
    while (read(child_signal_.get(), &info, sizeof(info)) > 0) {
    }
  }
  claimed_.AwaitEnd(patience);
  containment_.Leave();
  _exit(0);
}

}  // namespace hvd::daemon
