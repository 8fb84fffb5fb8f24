// Handles of asynchronous calls: number → what was submitted. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/engine/request.h"

namespace hvd {

class Engine;

// A call in flight: one request, or one a dtype of a group.
struct Pending {
  std::vector<std::unique_ptr<Request>> requests;
  std::weak_ptr<Engine> engine;  // gone: every request is done
};

class HandleTable {
 public:
  hvd_handle_t Add(std::shared_ptr<Pending> pending);
  // Null for a number that is no handle (any more).
  std::shared_ptr<Pending> Find(hvd_handle_t handle) const;
  // False when it is there no more: another thread has removed it.
  bool Remove(hvd_handle_t handle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<hvd_handle_t, std::shared_ptr<Pending>> pending_;
  hvd_handle_t last_ = 0;
};

}  // namespace hvd
