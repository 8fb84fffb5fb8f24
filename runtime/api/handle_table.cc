#include "runtime/api/handle_table.h"

namespace hvd {

hvd_handle_t HandleTable::Add(std::shared_ptr<Pending> pending) {
  std::lock_guard<std::mutex> lock(mutex_);
  pending_.emplace(++last_, std::move(pending));
  return last_;
}

std::shared_ptr<Pending> HandleTable::Find(hvd_handle_t handle) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pending_.find(handle);
  return found == pending_.end() ? nullptr : found->second;
}

bool HandleTable::Remove(hvd_handle_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  return pending_.erase(handle) != 0;
}

}  // namespace hvd
