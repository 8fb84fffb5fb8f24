// The store of a process that no launcher has started: its threads alone meet there.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/session/store.h"
#include "store/store_book.h"

namespace hvd {

class LocalStore : public Store {
 public:
  absl::StatusOr<std::unique_ptr<StoreCall>> Begin(const StoreRequest& request) override;

 private:
  class Call;

  void Give(std::vector<StoreBook::Reply> replies);  // REQUIRES: mutex_
  bool Await(uint64_t call, std::optional<StoreCall::TimePoint> until, StoreAnswer* answer);
  void GiveUp(uint64_t call);

  std::mutex mutex_;
  std::condition_variable answered_;
  StoreBook book_;                           // guarded by mutex_
  std::map<uint64_t, StoreAnswer> answers_;  // guarded by mutex_; not taken yet
  uint64_t last_call_ = 0;                   // guarded by mutex_
};

}  // namespace hvd
