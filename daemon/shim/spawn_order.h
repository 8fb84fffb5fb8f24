// SPDX-License-Identifier: Apache-2.0
// The order by which one rank's process is started, and its spelling in the memfd that carries it
// to the shim (an environment may be larger than any socket message).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace hvd::daemon {

struct SoftLimit {
  int resource = 0;  // RLIMIT_*
  uint64_t soft = 0;
};

struct SpawnOrder {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string directory;
  uint32_t umask = 022;
  int door_fd = -1;  // number that the rank's end of its link door gets
  std::vector<SoftLimit> limits;
  std::vector<int> cores;  // empty: not pinned
  // For a process that runs already: the socket, in the abstract namespace, at which it waits for
  // the rank that it is to be. Empty: the shim starts one.
  std::string claim;
  uint32_t claim_patience_ms = 0;  // for one that does not wait there yet
  uint32_t claim_grace_ms = 0;     // between TERM and KILL, when its launcher is gone
};

std::string PackOrder(const SpawnOrder& order);
// False: cut short or not an order.
bool UnpackOrder(std::string_view packed, SpawnOrder* order);

// The order in a memfd, and back. Invalid descriptor or false: errno says why.
Descriptor OrderToFd(const SpawnOrder& order);
bool OrderFromFd(int fd, SpawnOrder* order);

}  // namespace hvd::daemon
