// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/store_call.h"

#include <utility>

#include "runtime/api/process/process.h"
#include "runtime/errors/errors.h"
#include "store/store_limits.h"

namespace hvd::rt {
namespace {

absl::Status StatusOf(const StoreAnswer& answer) {
  switch (answer.outcome) {
    case StoreOutcome::kDone:
      return absl::OkStatus();
    case StoreOutcome::kTimedOut:
      return absl::DeadlineExceededError(answer.text);
    case StoreOutcome::kInvalid:
      return absl::InvalidArgumentError(answer.text);
    case StoreOutcome::kFull:
      return absl::ResourceExhaustedError(answer.text);
    case StoreOutcome::kAborted:
      return absl::AbortedError(answer.text);
    case StoreOutcome::kRefused:
      return absl::UnavailableError(answer.text);
  }
  return absl::InternalError("the store's answer is none that this libhvd knows");
}

}  // namespace

hvd_status_t ReturnOfStore(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsFailedPrecondition(status)) {
    return Fail(HVD_ERR_LAUNCH, std::string(status.message()));
  }
  return Return(status);
}

absl::StatusOr<StoreAnswer> AskStore(const StoreRequest& request) {
  const auto call = hvd_store_call_t::Begin(request);
  if (!call.ok()) return call.status();
  while (!(*call)->Await(std::nullopt)) {
  }
  if (const absl::Status status = (*call)->status(); !status.ok()) return status;
  return (*call)->answer();
}

}  // namespace hvd::rt

absl::StatusOr<std::unique_ptr<hvd_store_call_t>> hvd_store_call_t::Begin(
    const hvd::StoreRequest& request) {
  if (absl::Status status = hvd::CheckStoreRequest(request); !status.ok()) return status;
  const absl::StatusOr<hvd::rt::Store*> store = hvd::rt::Process::Get().store();
  if (!store.ok()) return store.status();
  auto call = (*store)->Begin(request);
  if (!call.ok()) return call.status();
  return std::unique_ptr<hvd_store_call_t>(new hvd_store_call_t(std::move(*call)));
}

bool hvd_store_call_t::Await(std::optional<hvd::rt::StoreCall::TimePoint> until) {
  if (ended_) return true;
  const absl::StatusOr<bool> answered = call_->Await(until);
  if (!answered.ok()) broken_ = answered.status();
  ended_ = !answered.ok() || *answered;
  return ended_;
}

absl::Status hvd_store_call_t::status() const {
  if (!ended_) return absl::DeadlineExceededError("hvd_store_end: given up before its end");
  return broken_.ok() ? hvd::rt::StatusOf(answer()) : broken_;
}
