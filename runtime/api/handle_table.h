// Handles of asynchronous calls: number → request. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "hvd/hvd.h"
#include "runtime/engine/request.h"

namespace hvd {

class HandleTable {
 public:
  hvd_handle_t Add(std::shared_ptr<Request> request);
  // Null for a number that is no handle (any more).
  std::shared_ptr<Request> Find(hvd_handle_t handle) const;
  void Remove(hvd_handle_t handle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<hvd_handle_t, std::shared_ptr<Request>> requests_;
  hvd_handle_t last_ = 0;
};

}  // namespace hvd
