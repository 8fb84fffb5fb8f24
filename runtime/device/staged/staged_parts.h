// SPDX-License-Identifier: Apache-2.0
// What all calls on their way by the host share.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "runtime/device/gpus.h"
#include "runtime/device/staged/staged_inbox.h"
#include "runtime/device/staged/staging.h"
#include "runtime/sets/process_sets.h"

namespace hvd::rt {

// The thread "hvd-gpu".
inline constexpr ThreadRole kGpuThread{};

// The names of this rank's calls under way. The engine knows only what is announced, and that is
// agreed before the call is done. Any thread.
class StagedNames {
 public:
  // False: it is taken.
  bool Take(int32_t set, const std::string& name) {
    const MutexLock lock(&mutex_);
    return name.empty() || names_.emplace(set, name).second;
  }
  void Give(int32_t set, const std::string& name) {
    const MutexLock lock(&mutex_);
    names_.erase({set, name});
  }

 private:
  Mutex mutex_;
  std::set<std::pair<int32_t, std::string>> names_ ABSL_GUARDED_BY(mutex_);
};

// Borrowed, but the device; they live as long as the process.
struct StagedParts {
  ProcessSets* sets = nullptr;
  Gpus* gpus = nullptr;
  Staging* staging = nullptr;
  StagedInbox* inbox = nullptr;
  StagedNames* names = nullptr;
  std::shared_ptr<GpuDevice> device;
  void (*free_result)(void*) = nullptr;  // what `gpus` has given
};

}  // namespace hvd::rt
