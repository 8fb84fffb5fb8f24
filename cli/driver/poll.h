// SPDX-License-Identifier: Apache-2.0
// What wakes the driver's loop: descriptors, each with the source whose it is. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/descriptor.h"

namespace hvd::cli {

enum class DriverSource : uint32_t {
  kConsole,
  kSpawner,
  kLinks,
  kHello,
  kErrors,
  kTimeline,
  kTerm
};

class DriverPoll {
 public:
  struct Ready {
    DriverSource source;
    int host = 0;
    uint32_t events = 0;
  };
  // A descriptor, and what of it is looked for (EPOLLIN …).
  struct Wish {
    int fd = -1;
    uint32_t events = 0;
  };

  DriverPoll();
  // Once more for the same descriptor: from now on for these events.
  void Watch(const Wish& wish, DriverSource source, int host = 0);
  void Forget(int fd);
  // Returns what is ready within so many seconds.
  std::vector<Ready> Wait(double seconds);

 private:
  const Descriptor epoll_;
};

}  // namespace hvd::cli
