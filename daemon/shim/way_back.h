// The way back: a listening socket that no path leads to any more. Whoever may look at the
// descriptors of its holder connects through /proc/PID/fd/N, so nothing is left on disk whatever
// dies.
#pragma once

#include "daemon/unique_fd.h"

namespace hvd {

struct WayBack {
  UniqueFd listener;
  UniqueFd place;  // O_PATH, what /proc/PID/fd/N names
};

// Invalid descriptors: no directory takes a socket.
WayBack MakeWayBack();

}  // namespace hvd
