// SPDX-License-Identifier: Apache-2.0
// Starts one rank's process: clone with a pidfd, hold it at a gate, then exec.
#pragma once

#include "base/descriptor.h"
#include "daemon/shim/exec_failure.h"
#include "daemon/shim/spawn_order.h"

namespace hvd::daemon {

struct SpawnFds {
  Descriptor in;
  Descriptor out;
  Descriptor err;
  Descriptor door;
};

// A child that waits at its gate.
struct Spawned {
  int pid = -1;         // -1: there is none, errno says why
  Descriptor pidfd;     // valid when pid is
  Descriptor gate;      // one byte lets it go on; closing it ends it
  Descriptor exec_end;  // end of file: the command runs; else one ExecFailure
  ExecFailure::Step failed = ExecFailure::Step::kDescriptors;  // where there is no child
};

// Shim only: the caller has one thread, so the child may use all of libc.
Spawned Spawn(const SpawnOrder& order, const SpawnFds& fds);

}  // namespace hvd::daemon
