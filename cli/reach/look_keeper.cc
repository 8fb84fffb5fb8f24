// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/look_keeper.h"

#include <dirent.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace hvd::cli {
namespace {

// The parent of a process; 0: it is gone.
pid_t ParentOf(pid_t process) {
  FILE* file = fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "re");
  if (file == nullptr) return 0;
  char text[512] = {};
  const size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[got] = '\0';
  // "12 (name) S 3": the name may hold anything.
  const char* behind_name = strrchr(text, ')');
  int parent = 0;
  if (behind_name == nullptr || sscanf(behind_name + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

// Our own children cannot give their numbers to others before we reap them.
void KillChildren() {
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return;
  const pid_t own = getpid();
  while (const dirent* entry = readdir(processes)) {
    const pid_t process = static_cast<pid_t>(atoi(entry->d_name));
    if (process > 0 && ParentOf(process) == own) kill(process, SIGKILL);
  }
  closedir(processes);
}

// Kills whatever is left. A process that a killed child had started becomes our child, so it takes
// turns. Each turn has killed all children there were, so the wait ends. Returns how the command
// ended.
int EndAll(pid_t command, int status) {
  kill(-command, SIGKILL);
  for (;;) {
    KillChildren();
    int ended = 0;
    const pid_t reaped = waitpid(-1, &ended, 0);
    if (reaped < 0) return status;
    if (reaped == command) status = ended;
  }
}

// Waits for the command's end or for SIGTERM, whichever is first. Its group's number is its own
// until the group is killed, so it is not reaped here.
void AwaitEnd(pid_t command, const sigset_t& awaited) {
  siginfo_t ended;
  for (;;) {
    ended.si_pid = 0;
    if (waitid(P_PID, command, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0)
      return;
    if (sigwaitinfo(&awaited, nullptr) == SIGTERM) return;
    // Orphans are reaped as they come: a script may start many.
    siginfo_t orphan;
    for (orphan.si_pid = 0; waitid(P_ALL, 0, &orphan, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                            orphan.si_pid != 0 && orphan.si_pid != command;
         orphan.si_pid = 0) {
      waitpid(orphan.si_pid, nullptr, 0);
    }
  }
}

[[noreturn]] void EndAs(int status, const sigset_t& blocked) {
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(WTERMSIG(status), SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

}  // namespace

void KeepLook(const Execution& command, pid_t spawner) {
  setsid();
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  signal(SIGCHLD, SIG_DFL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != spawner) _exit(127);  // it died before we asked
  dup2(command.input, STDIN_FILENO);
  dup2(command.output, STDOUT_FILENO);
  dup2(command.errors, STDERR_FILENO);
  syscall(SYS_close_range, 3u, ~0u, 0u);  // the hosts' links end with the spawner, not with us
  const pid_t own = getpid();
  const pid_t child = fork();
  if (child < 0) {
    dprintf(STDERR_FILENO, "no process for it: %s\n", strerror(errno));
    _exit(126);
  }
  if (child == 0) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != own) _exit(127);
    Execute({command.argv, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, command.files});
  }
  AwaitEnd(child, awaited);
  EndAs(EndAll(child, 0), awaited);
}

}  // namespace hvd::cli
