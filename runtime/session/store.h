// SPDX-License-Identifier: Apache-2.0
// The job's key-value store as this process asks it; without a launcher the process has one of its
// own.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "store/store_words.h"

namespace hvd::rt {

// A request under way. Threads: one at a time. At its end without an answer it is given up.
class StoreCall {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~StoreCall() = default;
  // Waits for the answer; false: `until` came first. Without one it waits for as long as it takes,
  // which is until the request's own timeout or the end of the job.
  virtual absl::StatusOr<bool> Await(std::optional<TimePoint> until) = 0;
  // REQUIRES: the call's answer has come.
  const StoreAnswer& answer() const { return answer_; }

 protected:
  StoreAnswer answer_;
};

// Threads: any. Outlives its calls.
class Store {
 public:
  virtual ~Store() = default;
  virtual absl::StatusOr<std::unique_ptr<StoreCall>> Begin(const StoreRequest& request) = 0;
};

}  // namespace hvd::rt
