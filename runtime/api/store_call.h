// SPDX-License-Identifier: Apache-2.0
// One call of the C ABI's to the key-value store: its request, sent, and the answer as a status.
#pragma once

#include <memory>
#include <optional>

#include "hvd/hvd.h"
#include "runtime/session/store.h"

// The call that hvd_store_begin_* give. Threads: one at a time.
struct hvd_store_call_t {
 public:
  // Looks the request over, and sends it.
  static absl::StatusOr<std::unique_ptr<hvd_store_call_t>> Begin(const hvd::StoreRequest& request);

  // True: it has ended, well or not.
  bool Await(std::optional<hvd::rt::StoreCall::TimePoint> until);
  // How it went. DeadlineExceeded when it has not ended.
  absl::Status status() const;
  const hvd::StoreAnswer& answer() const { return call_->answer(); }

 private:
  explicit hvd_store_call_t(std::unique_ptr<hvd::rt::StoreCall> call) : call_(std::move(call)) {}

  const std::unique_ptr<hvd::rt::StoreCall> call_;
  bool ended_ = false;
  absl::Status broken_;  // no answer will come: why
};

namespace hvd::rt {

// HVD_ERR_LAUNCH where the link is what fails.
hvd_status_t ReturnOfStore(const absl::Status& status);
// Does it all and waits for its answer.
absl::StatusOr<StoreAnswer> AskStore(const StoreRequest& request);

}  // namespace hvd::rt
