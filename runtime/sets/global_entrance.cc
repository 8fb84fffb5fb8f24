// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/global_entrance.h"

namespace hvd::rt {

void GlobalEntrance::Drop(std::vector<SetPointer> stopped) {
  {
    const MutexLock lock(&mutex_);
    for (SetPointer& set : stopped) stopped_.push_back(std::move(set));
    any_stopped_.store(true);
  }
  stopped.clear();
  DropStopped();
}

// Engines end their threads: not under the lock.
void GlobalEntrance::DropStopped() const {
  std::vector<SetPointer> dropped;
  const MutexLock lock(&mutex_);
  if (inside_.load() != 0) return;
  stopped_.swap(dropped);
  any_stopped_.store(false);
}

}  // namespace hvd::rt
