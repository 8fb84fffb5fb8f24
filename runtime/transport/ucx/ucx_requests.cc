// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ucx/ucx_requests.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace hvd::rt {

absl::Status UcxError(const UcxLibrary& ucx, ucs_status_t status, const std::string& doing) {
  const std::string text = doing + ": " + ucx.status_string(status);
  switch (status) {
    case UCS_ERR_CANCELED:
      return absl::AbortedError(text);
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

UcxRequest::~UcxRequest() {
  if (request_ == nullptr) return;
  const MutexLock lock(&worker_->mutex);
  Drop();
}

void UcxRequest::Drop() {
  if (request_ == nullptr) return;
  if (worker_->handle == nullptr) {
    request_ = nullptr;
    return;
  }
  if (ucx_->request_check_status(request_) == UCS_INPROGRESS && cancels_) {
    ucx_->request_cancel(worker_->handle, request_);
  }
  ucx_->request_free(std::exchange(request_, nullptr));
}

absl::StatusOr<bool> UcxSend::Test() {
  if (request_ == nullptr) return true;
  const MutexLock lock(&worker_->mutex);
  if (worker_->handle == nullptr) return Stopped();
  const ucs_status_t status = ucx_->request_check_status(request_);
  if (status == UCS_INPROGRESS) return false;
  if (status != UCS_OK) return UcxError(*ucx_, status, doing_.text());
  Drop();
  return true;
}

UcxReceive::UcxReceive(UcxWorker* worker, void* request, const UcxDoing& doing, size_t bytes)
    : UcxRequest(worker, request, doing), bytes_(bytes) {
  cancels_ = true;
}

absl::StatusOr<bool> UcxReceive::Test() {
  if (request_ == nullptr) return true;
  const MutexLock lock(&worker_->mutex);
  if (worker_->handle == nullptr) return Stopped();
  ucp_tag_recv_info_t info;
  const ucs_status_t status = ucx_->tag_recv_request_test(request_, &info);
  if (status == UCS_INPROGRESS) return false;
  if (status != UCS_OK) return UcxError(*ucx_, status, doing_.text());
  if (info.length != bytes_) {
    return absl::InternalError(
        absl::StrFormat("a message of %d bytes came where %d were expected", info.length, bytes_));
  }
  Drop();
  return true;
}

}  // namespace hvd::rt
