// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace hvd::daemon {
namespace {

using Step = ExecFailure::Step;

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Soft limits as asked for, as far as the host's hard ones allow; those stay.
void ApplyLimits(const std::vector<SoftLimit>& limits) {
  for (const SoftLimit& limit : limits) {
    rlimit now{};
    if (getrlimit(static_cast<__rlimit_resource>(limit.resource), &now) != 0) continue;
    now.rlim_cur = std::min<rlim_t>(limit.soft, now.rlim_max);
    setrlimit(static_cast<__rlimit_resource>(limit.resource), &now);
  }
}

void Pin(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// 0, 1, 2 and the door; nothing else outlives exec. `report` moves out of the door's way.
bool ArrangeDescriptors(const SpawnOrder& order, const SpawnFds& fds, int* report) {
  const int door = order.door_fd;
  const int moved = fcntl(*report, F_DUPFD_CLOEXEC, door + 1);
  if (moved < 0) return false;  // told by way of the old one
  *report = moved;
  if (dup2(fds.in.get(), 0) < 0 || dup2(fds.out.get(), 1) < 0 || dup2(fds.err.get(), 2) < 0 ||
      dup2(fds.door.get(), door) < 0) {
    return false;
  }
  return syscall(SYS_close_range, 3, door - 1, 0) == 0 &&
         syscall(SYS_close_range, door + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

[[noreturn]] void Fail(int report, Step step) {
  const ExecFailure failure{step, errno};
  [[maybe_unused]] const ssize_t n = write(report, &failure, sizeof(failure));
  _exit(127);
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void BecomeCommand(const SpawnOrder& order, const SpawnFds& fds, int gate,
                                int report) {
  char go;
  if (read(gate, &go, 1) != 1) _exit(127);
  // A process group of its own in any case. A session is a scheduling group too (autogroup), and
  // Linux (seen on 6.18) lets one that has tasks on several cores, each of which often sleeps and
  // wakes, starve all others there for seconds: hvdd and hvdrun among them. Bound ranks in sessions
  // of their own do not. Unbound ones do not either, and share cores better in one session.
  if (order.cores.empty()) {
    setpgid(0, 0);
  } else {
    setsid();
  }
  ResetSignals();
  prctl(PR_SET_PDEATHSIG, 0);
  if (!ArrangeDescriptors(order, fds, &report)) Fail(report, Step::kDescriptors);
  ApplyLimits(order.limits);
  Pin(order.cores);
  umask(order.umask);
  if (!order.directory.empty() && chdir(order.directory.c_str()) != 0) {
    Fail(report, Step::kDirectory);
  }
  std::vector<char*> argv = Pointers(order.argv);
  std::vector<char*> environment = Pointers(order.environment);
  environ = environment.data();  // execvp searches the PATH that the command will see
  execvp(argv[0], argv.data());
  Fail(report, Step::kCommand);
}

}  // namespace

Spawned Spawn(const SpawnOrder& order, const SpawnFds& fds) {
  Spawned spawned;
  int gate[2], report[2];
  if (pipe2(gate, O_CLOEXEC) != 0) return spawned;
  Descriptor gate_read(gate[0]);
  spawned.gate.Reset(gate[1]);
  if (pipe2(report, O_CLOEXEC) != 0) return spawned;
  spawned.exec_end.Reset(report[0]);
  Descriptor report_write(report[1]);

  int pidfd = -1;
  const int pid = static_cast<int>(
      syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr));
  if (pid == 0) {
    spawned.gate.Reset();  // else its own copy would keep the gate from ever ending
    BecomeCommand(order, fds, gate_read.get(), report_write.get());
  }
  // The child's pidfd is a descriptor, too.
  if (pid < 0 && errno != EMFILE && errno != ENFILE) spawned.failed = Step::kProcess;
  if (pid > 0) {
    spawned.pid = pid;
    spawned.pidfd.Reset(pidfd);
  }
  return spawned;
}

}  // namespace hvd::daemon
