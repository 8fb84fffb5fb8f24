// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/execute.h"

#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace hvd::cli {

void Execute(const Execution& execution) {
  setrlimit(RLIMIT_NOFILE, &execution.files);
  dup2(execution.input, STDIN_FILENO);
  dup2(execution.output, STDOUT_FILENO);
  dup2(execution.errors, STDERR_FILENO);
  syscall(SYS_close_range, 3u, ~0u, 0u);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> words;
  for (const std::string& word : execution.argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const std::string failure =
      absl::StrCat("hvdrun-cannot-execute: ", execution.argv[0], ": ", strerror(errno), "\n");
  if (write(STDERR_FILENO, failure.data(), failure.size()) < 0) _exit(126);
  _exit(127);
}

Descriptor HoldChild(int pid) {
  Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const int error = errno;
    kill(pid, SIGKILL);  // our own child, not reaped yet: the number is still its
    waitpid(pid, nullptr, 0);
    errno = error;
  }
  return pidfd;
}

}  // namespace hvd::cli
