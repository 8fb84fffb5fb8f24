// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/handles/handle_table.h"

#include <utility>

namespace hvd::rt {

hvd_handle_t HandleTable::Add(std::shared_ptr<Pending> pending) {
  const MutexLock lock(&mutex_);
  DropDoneLocked();
  pending_.emplace(last_ + 1, std::move(pending));
  return ++last_;
}

std::shared_ptr<Pending> HandleTable::Find(hvd_handle_t handle) const {
  const MutexLock lock(&mutex_);
  const auto found = pending_.find(handle);
  return found == pending_.end() ? nullptr : found->second;
}

bool HandleTable::Remove(hvd_handle_t handle) {
  std::shared_ptr<Pending> removed;  // outlives the lock
  const MutexLock lock(&mutex_);
  const auto found = pending_.find(handle);
  if (found == pending_.end()) return false;
  removed = std::move(found->second);
  pending_.erase(found);
  return true;
}

bool HandleTable::Release(hvd_handle_t handle) {
  const MutexLock lock(&mutex_);
  const auto found = pending_.find(handle);
  if (found == pending_.end()) return false;
  released_.push_back(found->second);
  pending_.erase(found);
  DropDoneLocked();
  return true;
}

bool HandleTable::WasGiven(hvd_handle_t handle) const {
  const MutexLock lock(&mutex_);
  return handle != 0 && handle <= last_;
}

// Calls mostly end in the order in which they were made: what ends past its turn waits for it.
void HandleTable::DropDoneLocked() {
  while (!released_.empty() && released_.front()->IsOver()) released_.pop_front();
}

}  // namespace hvd::rt
