// SPDX-License-Identifier: Apache-2.0
// TERM as a descriptor, for hvdrun's processes beside the console: it ends none of them.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace hvd::cli {

// Before the process has threads, which all block it then. Readable when one has come.
inline Descriptor TakeTerm() {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGTERM);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  return Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

// Whether one has come since.
inline bool TermHasCome(const Descriptor& descriptor) {
  signalfd_siginfo info;
  return read(descriptor.get(), &info, sizeof info) == sizeof info;
}

}  // namespace hvd::cli
