// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/shim_start.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/shim/shim.h"

namespace hvd::daemon {
namespace {

constexpr int kReadyMilliseconds = 10000;

struct Attempt {
  ContainmentLevel level;
  uint64_t clone_flags;
  std::optional<OwnUser> own_user;
};

// Keeps `keep` alone: the shim must hold none of hvdd's descriptors, or their end is never seen.
int DropDescriptors(int keep) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) dup2(null, fd);
  dup2(keep, 3);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  syscall(SYS_close_range, 4, ~0U, 0);
  return 3;
}

[[noreturn]] void BecomeShim(const Attempt& attempt, int socket, const LeaseWord* lease) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // CHLD is read from a descriptor, the rest is not ours
  setsid();
  prctl(PR_SET_NAME, "hvd-shim");
  ShimChannel channel{Descriptor(DropDescriptors(socket))};
  // Opened before the fresh /proc: it names this process by hvdd's PID namespace.
  Descriptor fdinfo(open("/proc/self/fdinfo", O_PATH | O_DIRECTORY | O_CLOEXEC));
  absl::StatusOr<Containment> containment = Containment::Enter(attempt.level, attempt.own_user);
  if (!containment.ok()) {
    ShimReport report{ShimTell::kFailed};
    snprintf(report.text, sizeof(report.text), "%s",
             std::string(containment.status().message()).c_str());
    channel.Tell(report);
    _exit(0);
  }
  Shim(std::move(channel), *std::move(containment), std::move(fdinfo), lease).Serve();
}

absl::Status Impossible(const Attempt& attempt, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat(LevelName(attempt.level),
                   attempt.own_user.has_value() ? " (user namespace)" : "", ": ", why));
}

// Waits for the shim's first word.
absl::StatusOr<ShimProcess> Await(const Attempt& attempt, ShimProcess shim) {
  ShimChannel channel(std::move(shim.channel));
  ShimReport report{};
  std::vector<Descriptor> fds;
  pollfd ready{channel.fd(), POLLIN, 0};
  const bool heard = poll(&ready, 1, kReadyMilliseconds) == 1 &&
                     channel.Receive(&report, &fds) == ShimChannel::Got::kRecord;
  if (!heard || report.tell != ShimTell::kReady) {
    kill(shim.pid, SIGKILL);  // our own child, not reaped yet: the number is still its
    waitpid(shim.pid, nullptr, 0);
    return Impossible(attempt, heard ? report.text : "the shim did not come up");
  }
  if (!fds.empty()) {
    shim.listener = std::move(fds[0]);
    shim.way_back = absl::StrCat("/proc/", report.pid, "/fd/", report.status);
  }
  shim.cgroup = report.text;
  shim.channel.Reset(fcntl(channel.fd(), F_DUPFD_CLOEXEC, 3));
  return shim;
}

absl::StatusOr<ShimProcess> Try(const Attempt& attempt) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Impossible(attempt, strerrordesc_np(errno));
  }
  Descriptor mine(ends[0]), its(ends[1]);
  auto lease = std::make_unique<LeaseWord>();
  const pid_t pid = static_cast<pid_t>(
      syscall(SYS_clone, attempt.clone_flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid < 0) return Impossible(attempt, strerrordesc_np(errno));
  if (pid == 0) BecomeShim(attempt, its.get(), lease.get());
  ShimProcess shim;
  shim.level = attempt.level;
  shim.pid = pid;
  shim.channel = std::move(mine);
  shim.lease = std::move(lease);
  its.Reset();
  return Await(attempt, std::move(shim));
}

std::vector<Attempt> AttemptsFor(ContainmentLevel level) {
  const bool any = level == ContainmentLevel::kAuto;
  std::vector<Attempt> attempts;
  if (any || level == ContainmentLevel::kNamespace) {
    const uint64_t flags = CLONE_NEWPID | CLONE_NEWNS;
    attempts.push_back({ContainmentLevel::kNamespace, flags, std::nullopt});
    attempts.push_back(
        {ContainmentLevel::kNamespace, flags | CLONE_NEWUSER, OwnUser{geteuid(), getegid()}});
  }
  if (any || level == ContainmentLevel::kCgroup) {
    attempts.push_back({ContainmentLevel::kCgroup, 0, std::nullopt});
  }
  if (any || level == ContainmentLevel::kSubreaper) {
    attempts.push_back({ContainmentLevel::kSubreaper, 0, std::nullopt});
  }
  return attempts;
}

}  // namespace

absl::StatusOr<ShimProcess> StartShim(ContainmentLevel level) {
  // If the shim dies, what it held comes to hvdd.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::string why;
  for (const Attempt& attempt : AttemptsFor(level)) {
    absl::StatusOr<ShimProcess> shim = Try(attempt);
    if (!shim.ok()) {
      absl::StrAppend(&why, why.empty() ? "" : "; ", shim.status().message());
      continue;
    }
    if (attempt.level != ContainmentLevel::kNamespace) shim->weaker_why = why;
    return shim;
  }
  return absl::UnavailableError(absl::StrCat("containment is impossible here: ", why));
}

}  // namespace hvd::daemon
