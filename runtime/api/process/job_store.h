// SPDX-License-Identifier: Apache-2.0
// The job's key-value store, before hvd_init as well as after hvd_shutdown.
//
// Threads: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/session/store.h"

namespace hvd::rt {

class JobStore {
 public:
  // Returns it; it is made once and stays. `adopted`: ProcessOrigin::environment.
  absl::StatusOr<Store*> Find(const std::vector<std::string>& adopted);

 private:
  Mutex mutex_;
  std::unique_ptr<Store> store_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
