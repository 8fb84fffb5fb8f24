// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/claimed_workers.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor_mail.h"
#include "daemon/processes/process_end.h"
#include "daemon/shim/process_tree.h"
#include "proto/adoption.h"
#include "proto/exit_code.h"

namespace hvd::daemon {
namespace {

// The exit code of a process of whose end nobody can tell: that it did not end well cannot be said
// either.
constexpr int kUnknownEnd = 1;
// How long an end that is known waits for one that began before it.
constexpr Clock::duration kTurnPatience = std::chrono::milliseconds(100);
constexpr Clock::duration kFirstPause = std::chrono::milliseconds(10);
constexpr Clock::duration kLongestPause = std::chrono::milliseconds(250);

// Returns the part of a worker's environment that tells of the job. The rest is its launcher's.
std::string OwnNames(const std::vector<std::string>& environment) {
  std::string block;
  for (const std::string& entry : environment) {
    if (!absl::StartsWith(entry, "HVD_") && !absl::StartsWith(entry, "HOROVOD_")) continue;
    block.append(entry).push_back('\0');
  }
  return block;
}

void SetText(ShimReport* report, const std::string& text) {
  snprintf(report->text, sizeof(report->text), "%s", text.c_str());
}

}  // namespace

ClaimedWorkers::ClaimedWorkers(Loop* loop, std::function<void(const ShimReport&)> tell,
                               std::function<void()> on_end)
    : loop_(loop), tell_(std::move(tell)), on_end_(std::move(on_end)) {}

void ClaimedWorkers::Claim(int slot, SpawnOrder order, Descriptor door) {
  Worker worker;
  worker.patience = Clock::now() + std::chrono::milliseconds(order.claim_patience_ms);
  worker.order = std::move(order);
  worker.door = std::move(door);
  worker.pause = kFirstPause;
  workers_[slot] = std::move(worker);
  Reach(slot);
}

void ClaimedWorkers::Reach(int slot) {
  const auto found = workers_.find(slot);
  if (found == workers_.end() || found->second.talk.valid()) return;
  Worker& worker = found->second;
  if (!Connect(&worker)) {
    const int error = errno;
    if (error == ECONNREFUSED || error == EAGAIN || error == EINTR) return TryAgain(slot);
    return Fail(slot, absl::StrCat("cannot connect to it: ", strerrordesc_np(error)));
  }
  const std::string wrong = HandOver(&worker);
  if (!wrong.empty()) return Fail(slot, wrong);
  loop_->Watch(worker.talk.get(), EPOLLIN, [this, slot](uint32_t) { OnWords(slot); });
  loop_->Watch(worker.pidfd.get(), EPOLLIN, [this, slot](uint32_t) { OnProcessEnd(slot); });
}

void ClaimedWorkers::TryAgain(int slot) {
  Worker& worker = workers_[slot];
  if (Clock::now() >= worker.patience) {
    return Fail(slot, absl::StrCat("it has not called hvd's init within ",
                                   worker.order.claim_patience_ms / 1000,
                                   " s; has it ended, or does it wait for something else?"));
  }
  loop_->At(Clock::now() + worker.pause, [this, slot] { Reach(slot); });
  worker.pause = std::min(worker.pause * 2, kLongestPause);
}

// errno says why not.
bool ClaimedWorkers::Connect(Worker* worker) {
  Descriptor talk(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const ClaimAddress address(worker->order.claim);
  if (!talk.valid() || connect(talk.get(), address.get(), address.size) != 0) return false;
  worker->talk = std::move(talk);
  return true;
}

// Empty, or why it cannot be the rank.
std::string ClaimedWorkers::HandOver(Worker* worker) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(worker->talk.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return absl::StrCat("who waits there is not known: ", strerrordesc_np(errno));
  }
  if (who.uid != geteuid()) return absl::StrCat("user ", who.uid, " waits there in its place");
  if (who.pid <= 0) return "it lies in another PID namespace than hvdd";
  worker->pid = who.pid;
  worker->pidfd.Reset(static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0)));
  if (!worker->pidfd.valid()) {
    return absl::StrCat("it cannot be watched: ", strerrordesc_np(errno));
  }
  const std::string place = OwnNames(worker->order.environment);
  if (SendMail(worker->talk.get(), {place.data(), place.size()}, {worker->door.get()}, 0) < 0) {
    return absl::StrCat("it cannot be told its place: ", strerrordesc_np(errno));
  }
  worker->door.Reset();
  return "";
}

void ClaimedWorkers::OnWords(int slot) {
  Worker& worker = workers_[slot];
  ClaimWord word;
  while (true) {
    const ssize_t got = recv(worker.talk.get(), &word, sizeof(word), MSG_DONTWAIT);
    if (got < 0) return;
    if (got == 0) break;  // its end comes by the pidfd
    if (got != sizeof(word)) continue;
    if (word.kind == ClaimWord::kEnds) worker.word = word.number;
    if (word.kind != ClaimWord::kTaken || worker.taken) continue;
    worker.taken = true;
    ShimReport report{ShimTell::kStarted};
    report.slot = slot;
    report.pid = worker.pid;
    tell_(report);
    WatchParent(slot, word.number);
  }
  loop_->Forget(worker.talk.get());
  worker.talk.Reset();
  if (!worker.taken) return Fail(slot, "it has given up, or has ended");
  going_.push_back(slot);
}

// A launcher that is killed leaves its processes, which nobody would end. (PR_SET_PDEATHSIG hangs
// on the thread that has started them, which may end before.)
void ClaimedWorkers::WatchParent(int slot, int parent) {
  Worker& worker = workers_[slot];
  if (parent <= 1) return;  // it had none when it came
  worker.parent.Reset(static_cast<int>(syscall(SYS_pidfd_open, parent, 0)));
  if (!worker.parent.valid()) return EndOrphan(slot);
  loop_->Watch(worker.parent.get(), EPOLLIN, [this, slot](uint32_t) { EndOrphan(slot); });
}

// A slot has one worker in a job whose ranks are adopted, so that the timer finds none but this.
void ClaimedWorkers::EndOrphan(int slot) {
  Worker& orphan = workers_[slot];
  if (orphan.parent.valid()) {
    loop_->Forget(orphan.parent.get());
    orphan.parent.Reset();
  }
  SendSignal(orphan.pidfd.get(), SIGCONT);
  SendSignal(orphan.pidfd.get(), SIGTERM);
  loop_->At(Clock::now() + std::chrono::milliseconds(orphan.order.claim_grace_ms), [this, slot] {
    const auto found = workers_.find(slot);
    if (found != workers_.end()) SendSignal(found->second.pidfd.get(), SIGKILL);
  });
}

// The kernel keeps the status of a process whose parent has taken it, from Linux 6.15 on; before
// that there is what it has announced, or a look that may come too late.
ShimReport ClaimedWorkers::DescribeEnd(int slot) const {
  const Worker& worker = workers_.at(slot);
  const std::optional<int> known = EndStatus(worker.pidfd.get(), worker.pid);
  ShimReport report{ShimTell::kExited};
  report.slot = slot;
  report.pid = worker.pid;
  if (known.has_value()) {
    report.status = *known;
  } else if (worker.word.has_value()) {
    report.status = W_EXITCODE(*worker.word, 0);
  } else {
    report.status = W_EXITCODE(kUnknownEnd, 0);
    SetText(&report, "it ended without a word, and its launcher has its status");
  }
  return report;
}

void ClaimedWorkers::OnProcessEnd(int slot) {
  if (workers_[slot].talk.valid()) OnWords(slot);  // its last word may lie there
  const auto found = workers_.find(slot);
  if (found == workers_.end()) return;
  found->second.ended = DescribeEnd(slot);
  loop_->Forget(found->second.pidfd.get());
  if (std::find(going_.begin(), going_.end(), slot) == going_.end()) going_.push_back(slot);
  TellEnds(false);
  if (!going_.empty()) loop_->At(Clock::now() + kTurnPatience, [this] { TellEnds(true); });
}

// A process closes what it has open before its memory is taken down, which takes a while, and only
// then has it ended. A launcher that kills the others at the first sign may see them end before the
// one that was first, and that one is to be told first.
void ClaimedWorkers::TellEnds(bool all) {
  for (size_t next = 0; next < going_.size();) {
    const int slot = going_[next];
    if (!workers_[slot].ended.has_value()) {
      if (!all) return;
      ++next;
      continue;
    }
    const ShimReport report = *workers_[slot].ended;
    Drop(slot);
    tell_(report);
    on_end_();
  }
}

void ClaimedWorkers::Fail(int slot, const std::string& why) {
  ShimReport report{ShimTell::kSpawnFailed};
  report.slot = slot;
  report.pid = workers_[slot].pid;
  report.status = kExitLauncher;
  SetText(&report, absl::StrCat("the process that is to be the rank of slot ", slot, ": ", why));
  Drop(slot);
  tell_(report);
  on_end_();
}

void ClaimedWorkers::Drop(int slot) {
  Worker& worker = workers_[slot];
  if (worker.talk.valid()) loop_->Forget(worker.talk.get());
  if (worker.pidfd.valid() && !worker.ended.has_value()) loop_->Forget(worker.pidfd.get());
  if (worker.parent.valid()) loop_->Forget(worker.parent.get());
  workers_.erase(slot);
  going_.erase(std::remove(going_.begin(), going_.end(), slot), going_.end());
}

bool ClaimedWorkers::Signal(const ShimRequest& request) {
  const auto found = workers_.find(request.slot);
  if (found == workers_.end()) return false;
  if (!found->second.pidfd.valid()) return true;
  if (request.tree != 0) SendSignal(found->second.pidfd.get(), SIGCONT);
  SendSignal(found->second.pidfd.get(), request.signal);
  return true;
}

void ClaimedWorkers::GiveUpAwaited() {
  std::vector<int> awaited;
  for (const auto& [slot, worker] : workers_) {
    if (!worker.pidfd.valid()) awaited.push_back(slot);
  }
  for (const int slot : awaited) Fail(slot, "it had not come when the job was ended");
}

void ClaimedWorkers::KillAll() {
  GiveUpAwaited();
  KillNow();
}

void ClaimedWorkers::KillNow() const {
  for (const auto& [slot, worker] : workers_) {
    if (worker.pidfd.valid()) SendSignal(worker.pidfd.get(), SIGKILL);
  }
}

int ClaimedWorkers::living() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const auto& entry) {
    return entry.second.pidfd.valid();
  }));
}

void ClaimedWorkers::AwaitEnd(TimePoint until) const {
  for (const auto& [slot, worker] : workers_) {
    if (!worker.pidfd.valid()) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd ended{worker.pidfd.get(), POLLIN, 0};
    poll(&ended, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
  }
}

}  // namespace hvd::daemon
