// SPDX-License-Identifier: Apache-2.0
// The kernel's word on what a process is doing. Thin.
#pragma once

namespace hvd::daemon {

struct ProcessState {
  char letter = '?';  // as ps shows it: R, S, D, T (stopped), t (held by a debugger), Z; '?': gone
  bool exiting = false;  // it has begun to end, or is a zombie
  bool stopped() const { return letter == 'T' || letter == 't'; }
};

ProcessState StateOf(int pid);

}  // namespace hvd::daemon
