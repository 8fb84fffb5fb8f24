// SPDX-License-Identifier: Apache-2.0
// The epoch that this process is in: its global set's engine, and what the program is told of it.
//
// Threads: any. Calls of other threads may hold the engine for a moment after the epoch was left.
#pragma once

#include <memory>

#include "base/mutex.h"
#include "hvd/hvd.h"
#include "runtime/engine/engine.h"

namespace hvd::rt {

// Outlives the engines.
class JoinedEpoch {
 public:
  // Shares the engine; its end is counted.
  std::shared_ptr<Engine> Share(std::unique_ptr<Engine> engine);
  // `engine`: of Share.
  void Begin(std::shared_ptr<Engine> engine, const hvd_epoch_t& epoch);
  void End();
  // Returns when no call holds an engine of Share any more.
  void AwaitEnginesEnd();

  // Null: the process is in none, or it is a forked child.
  std::shared_ptr<Engine> engine() const;
  // Number 0: it is in none.
  hvd_epoch_t epoch() const;

 private:
  mutable Mutex mutex_;
  Condition engine_ended_;
  int engines_ ABSL_GUARDED_BY(mutex_) = 0;  // that calls may still hold
  std::shared_ptr<Engine> engine_ ABSL_GUARDED_BY(mutex_);
  hvd_epoch_t epoch_ ABSL_GUARDED_BY(mutex_) = HVD_EPOCH_INIT;
};

}  // namespace hvd::rt
