// SPDX-License-Identifier: Apache-2.0
// The way back: a listening socket that no path leads to any more. Whoever may look at the
// descriptors of its holder connects through /proc/PID/fd/N, so nothing is left on disk whatever
// dies.
#pragma once

#include "base/descriptor.h"

namespace hvd::daemon {

struct WayBack {
  Descriptor listener;
  Descriptor place;  // O_PATH, what /proc/PID/fd/N names
};

// Invalid descriptors: no directory takes a socket.
WayBack MakeWayBack();

}  // namespace hvd::daemon
