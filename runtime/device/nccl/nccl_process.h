// SPDX-License-Identifier: Apache-2.0
// What the process sets of a process share of NCCL: the library, the order of launches, and a
// thread that looks after what has been launched.
//
// Threads: any; one of its own, "hvd-nccl", from an epoch's first communicator to the epoch's end.
// It tells ends, and sees the epoch's end when nobody else looks: the program may wait for a
// stream.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {

// An object that "hvd-nccl" looks after.
class NcclWatched {
 public:
  virtual ~NcclWatched() = default;
  // Tells what has finished, or gone wrong. Whether there is more to be looked for.
  virtual bool Look() = 0;
};

struct NcclSettings {
  NcclPlaces places;
  bool may_share_gpus = false;  // as NCCL has been told
};

// Lives as long as the process.
class NcclProcess {
 public:
  NcclProcess() = default;
  NcclProcess(const NcclProcess&) = delete;
  NcclProcess& operator=(const NcclProcess&) = delete;

  // A new epoch. A library that is loaded stays.
  void Begin(NcclSettings settings);
  // Loaded at the first call that finds one.
  absl::StatusOr<const NcclLibrary*> library();
  bool may_share_gpus() const;

  // Held while a set's launch is agreed on and made, by sets that keep one order.
  Mutex& launch_mutex() { return launch_mutex_; }
  // How many sets of this rank use NCCL without that. Any thread.
  std::atomic<int>& unordered_sets() { return unordered_sets_; }

  // From Watch until Forget has returned `watched` is looked after.
  void Watch(NcclWatched* watched);
  void Forget(NcclWatched* watched);
  // There is something to be looked for, soon. Also from a thread of the driver's.
  void Poke();
  // There is something to be looked for at intervals. Cheap while that is done already.
  void WakeIfIdle() {
    if (idle_.load()) Poke();
  }
  // After the last engine has gone.
  void EndEpoch();

 private:
  void Body();
  bool LookAll();

  mutable Mutex library_mutex_;
  NcclSettings settings_ ABSL_GUARDED_BY(library_mutex_);
  std::optional<NcclLibrary> library_ ABSL_GUARDED_BY(library_mutex_);
  Mutex launch_mutex_;
  std::atomic<int> unordered_sets_{0};

  // The thread sleeps until it is poked. Written before it looks for the last time.
  std::atomic<bool> idle_{false};
  Mutex mutex_;
  Condition changed_;
  Mutex looking_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // held while the watched are looked after
  std::vector<NcclWatched*> watched_ ABSL_GUARDED_BY(looking_mutex_);
  bool poked_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
