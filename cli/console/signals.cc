// SPDX-License-Identifier: Apache-2.0
#include "cli/console/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>

namespace hvd::cli {
namespace {

bool HasTerminal() {
  return Descriptor(open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)).valid();
}

bool IsIgnored(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

ConsoleSignals::ConsoleSignals() : had_terminal_(HasTerminal()) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGCHLD}) {
    // A blocked signal is queued even if it is ignored, so these stay unblocked.
    if (!IsIgnored(signal)) sigaddset(&taken, signal);
  }
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  for (const int signal : {SIGPIPE, SIGTTIN, SIGTTOU}) ::signal(signal, SIG_IGN);
  fd_.Reset(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> ConsoleSignals::Next() {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool ConsoleSignals::TerminalIsGone() const { return had_terminal_ && !HasTerminal(); }

}  // namespace hvd::cli
