// SPDX-License-Identifier: Apache-2.0
// The store of a process that no launcher has started: its threads alone meet there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "runtime/session/store.h"
#include "store/store_book.h"

namespace hvd::rt {

class LocalStore : public Store {
 public:
  absl::StatusOr<std::unique_ptr<StoreCall>> Begin(const StoreRequest& request) override;

 private:
  class Call;

  void Give(std::vector<StoreBook::Reply> replies) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Await(uint64_t call, std::optional<StoreCall::TimePoint> until, StoreAnswer* answer);
  void GiveUp(uint64_t call);

  Mutex mutex_;
  Condition answered_;
  StoreBook book_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, StoreAnswer> answers_ ABSL_GUARDED_BY(mutex_);  // not taken yet
  uint64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hvd::rt
