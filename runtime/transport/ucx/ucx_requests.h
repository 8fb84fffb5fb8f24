// SPDX-License-Identifier: Apache-2.0
// Sends and receives under way over UCX, and what UCX's errors are to us.
//
// UCX is called by one thread at a time: every call that touches a worker, its requests included,
// holds its mutex. Nothing waits while it holds it.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx/ucx_library.h"

namespace hvd::rt {

// Unavailable: the peer cannot be reached any more. Aborted: it was cancelled.
absl::Status UcxError(const UcxLibrary& ucx, ucs_status_t status, const std::string& doing);

struct UcxWorker {
  const UcxLibrary* ucx = nullptr;
  Mutex mutex;
  // Null: stopped, and its requests are gone with it.
  ucp_worker_h handle ABSL_GUARDED_BY(mutex) = nullptr;
};

// The purpose of a request, in words when it fails.
struct UcxDoing {
  const char* what = "";
  const std::string* peer = nullptr;  // outlives the request; null: none
  std::string text() const { return peer != nullptr ? what + *peer : what; }
};

// Owns a UCX request that was not done at once.
class UcxRequest : public TransportRequest {
 public:
  UcxRequest(UcxWorker* worker, void* request, const UcxDoing& doing)
      : ucx_(worker->ucx), worker_(worker), doing_(doing), request_(request) {}
  ~UcxRequest() override;

 protected:
  void Drop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(worker_->mutex);
  absl::Status Stopped() const { return absl::AbortedError("UCX has been stopped"); }

  const UcxLibrary* const ucx_;
  UcxWorker* const worker_;
  const UcxDoing doing_;
  void* request_;         // the owner's, who tests it and lets it go; null: it is done
  bool cancels_ = false;  // UCX can cancel receives only
};

class UcxSend : public UcxRequest {
 public:
  using UcxRequest::UcxRequest;
  absl::StatusOr<bool> Test() override;
};

class UcxReceive : public UcxRequest {
 public:
  UcxReceive(UcxWorker* worker, void* request, const UcxDoing& doing, size_t bytes);
  absl::StatusOr<bool> Test() override;

 private:
  const size_t bytes_;
};

}  // namespace hvd::rt
