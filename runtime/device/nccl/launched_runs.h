// SPDX-License-Identifier: Apache-2.0
// What a process set has launched on its device, until its end has been told.
//
// Threads: any. An end is told by whoever looks, with no lock of this held.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "runtime/device/caller_order.h"
#include "runtime/engine/execution/device_work.h"

namespace hvd::rt {

class LaunchedRuns {
 public:
  // `poke`: has somebody call TellPassed. A thread of the driver's calls it, with `arg`.
  LaunchedRuns(void (*poke)(void* arg), void* arg) : poke_(poke), arg_(arg) {}

  // In the order of their launches. In the device's Scope.
  void Add(std::shared_ptr<LaunchedEnd> end, DeviceEnd ended);
  // Tells those that the device has finished. Whether there are others.
  bool TellPassed();
  // The oldest has failed, for all that is known.
  void TellFailed(const absl::Status& status);
  // Somebody waits for all that has been added: the driver pokes when it is over.
  void Hurry();
  // Nothing more is told.
  void Clear();

 private:
  struct Run {
    std::shared_ptr<LaunchedEnd> end;
    DeviceEnd ended;
    bool hurried = false;
  };
  struct Told {
    DeviceEnd ended;
    absl::Status status;
  };
  static void Tell(const std::vector<Told>& told);

  void (*const poke_)(void* arg);
  void* const arg_;
  Mutex mutex_;
  std::deque<Run> runs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
