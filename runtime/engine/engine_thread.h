// SPDX-License-Identifier: Apache-2.0
// The engine's own thread ("hvd-engine"): it executes what nobody waits for.
#pragma once

#include <thread>

#include "runtime/engine/executor.h"

namespace hvd {

// All borrowed.
struct EngineThreadParts {
  EpochWorld* world = nullptr;
  ExecutorRole* role = nullptr;
  PendingRequests* pending = nullptr;
  Pairs* pairs = nullptr;
  DeviceRuns* device = nullptr;
  BatchExecutor* batches = nullptr;
  Executor* executor = nullptr;
};

class EngineThread {
 public:
  explicit EngineThread(const EngineThreadParts& parts);
  ~EngineThread() { Stop(); }
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  void Stop();  // joins it; once or more

  // Any thread. It looks at the work a while after the first of some requests: at once when a batch
  // is full, and for sends and receives, which have nothing to go with.
  void Arm();
  void ArmNow() { parts_.role->timer().ArmNow(); }
  // While a device works on the rest, there is nothing to do: it wakes this thread (ArmNow).
  bool HasWork() const { return parts_.pending->count() > 0 || parts_.device->has_told(); }
  // Whether it executes though nothing is pending here: other hosts' ranks may ask.
  bool MustListen() const { return parts_.world->leader() != nullptr && !parts_.role->stopping(); }

 private:
  struct Coming {
    uint64_t seen = 0;  // of this rank's submissions
    int windows = 0;    // that have been waited for
  };
  bool MoreComes(Coming* coming) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void Body();

  const EngineThreadParts parts_;
  std::thread thread_;
};

}  // namespace hvd
