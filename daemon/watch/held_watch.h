// SPDX-License-Identifier: Apache-2.0
// Since when the kernel holds ranks of this host (SIGSTOP, a debugger), whatever they were in.
// Pure.
#pragma once

#include <map>
#include <vector>

#include "base/loop.h"

namespace hvd::daemon {

struct HeldSlot {
  int slot = 0;
  double held_s = 0;  // at least so long, at most one look more
};

class HeldWatch {
 public:
  // `slots`: of the processes that are held now.
  std::vector<HeldSlot> Take(const std::vector<int>& slots, TimePoint now);
  // True when one of them has been held for `every_s`, or a multiple of that, since the last call.
  bool Due(const std::vector<HeldSlot>& held, double every_s, TimePoint now);

 private:
  std::map<int, TimePoint> since_;
  TimePoint looked_;
};

}  // namespace hvd::daemon
