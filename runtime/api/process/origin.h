// SPDX-License-Identifier: Apache-2.0
// Where this process comes from. One that another launcher has started is made a rank, once.
//
// Threads: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "runtime/adoption/adopted.h"

namespace hvd::rt {

// Lives as long as the process.
class ProcessOrigin {
 public:
  // Makes this process a rank if another launcher has started it, and waits for the others. Tries
  // only once: the launcher's other processes have gone on by the time of another try.
  absl::Status Adopt();
  // What hvdrun gives its workers, where it was adopted; NAME=VALUE. After Adopt.
  const std::vector<std::string>& environment() const;

 private:
  absl::Status AdoptLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  bool tried_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Adopted>
      adopted_;  // set once, by Adopt; null: hvdrun has started this, or nobody
};

}  // namespace hvd::rt
