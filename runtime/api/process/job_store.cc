// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/process/job_store.h"

#include <utility>

#include "runtime/engine/tuning/config.h"
#include "runtime/session/linked_store.h"
#include "runtime/session/local_store.h"

namespace hvd::rt {

absl::StatusOr<Store*> JobStore::Find(const std::vector<std::string>& adopted) {
  const MutexLock lock(&mutex_);
  if (store_ != nullptr) return store_.get();
  auto link = ReadLink(adopted);
  if (!link.ok()) return link.status();
  if (link->has_value()) {
    store_ = std::make_unique<LinkedStore>(**std::move(link));
  } else {
    store_ = std::make_unique<LocalStore>();
  }
  return store_.get();
}

}  // namespace hvd::rt
