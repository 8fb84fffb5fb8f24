// SPDX-License-Identifier: Apache-2.0
// The store of the job, over connections to hvdd of its own: each carries one call at a time, and
// is kept for the next one. They need no rank to be claimed and no epoch, and take nothing from the
// Session's link, so a call may come before, beside and after those.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "proto/hello.h"
#include "runtime/session/link_socket.h"
#include "runtime/session/store.h"

namespace hvd::rt {

class LinkedStore : public Store {
 public:
  explicit LinkedStore(LinkName link) : link_(std::move(link)) {}
  // Unavailable: the daemon cannot be reached, or is gone.
  absl::StatusOr<std::unique_ptr<StoreCall>> Begin(const StoreRequest& request) override;

 private:
  class Call;

  std::unique_ptr<LinkSocket> TakeIdle();
  void Keep(std::unique_ptr<LinkSocket> socket);

  const LinkName link_;
  Mutex mutex_;
  std::vector<std::unique_ptr<LinkSocket>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
