// SPDX-License-Identifier: Apache-2.0
// The engine's own thread ("hvd-engine"): it executes what nobody waits for.
#pragma once

#include <thread>

#include "runtime/engine/executor.h"

namespace hvd::rt {

class EngineThread {
 public:
  // All borrowed.
  EngineThread(const EnginePlace& place, Intake* intake, Executor* executor);
  ~EngineThread() { Stop(); }
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  void Stop();  // joins it; once or more

  // Any thread. It looks at the work a while after the first of some requests: at once when a batch
  // is full, and for sends and receives, which have nothing to go with.
  void Arm();
  void ArmNow() { place_.role->timer().ArmNow(); }
  // While a device works on the rest, there is nothing to do: it wakes this thread (ArmNow).
  bool HasWork() const { return intake_.pending().count() > 0 || executor_.device().has_told(); }
  // Whether it executes though nothing is pending here: other hosts' ranks may ask.
  bool MustListen() const { return place_.world->leader() != nullptr && !place_.role->stopping(); }

 private:
  struct Coming {
    uint64_t seen = 0;  // of this rank's submissions
    int windows = 0;    // that have been waited for
  };
  bool MoreComes(Coming* coming) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void Body();

  const EnginePlace place_;
  Intake& intake_;
  Executor& executor_;
  std::thread thread_;
};

}  // namespace hvd::rt
