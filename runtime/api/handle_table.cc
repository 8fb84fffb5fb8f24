#include "runtime/api/handle_table.h"

namespace hvd {

hvd_handle_t HandleTable::Add(std::shared_ptr<Request> request) {
  std::lock_guard<std::mutex> lock(mutex_);
  requests_.emplace(++last_, std::move(request));
  return last_;
}

std::shared_ptr<Request> HandleTable::Find(hvd_handle_t handle) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = requests_.find(handle);
  return found == requests_.end() ? nullptr : found->second;
}

void HandleTable::Remove(hvd_handle_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  requests_.erase(handle);
}

}  // namespace hvd
