// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pending/pending_requests.h"

#include <utility>

namespace hvd::rt {

void PendingRequests::Defer(Request* request) {
  deferred_.push_back(request);
  AddCount(1);
}

Request* PendingRequests::TakeDeferred() {
  if (deferred_.empty() || deferred_.front()->course.local->pending != nullptr) return nullptr;
  Request* request = deferred_.front();
  deferred_.pop_front();
  return request->course.local->pending = request;
}

void PendingRequests::Break(const absl::Status& why, absl::FunctionRef<void(Request*)> end) {
  if (broken_.ok()) broken_ = why;
  names_.ForEachPending([&end](LocalName* name) { end(std::exchange(name->pending, nullptr)); });
  for (Request* request : deferred_) end(request);
  deferred_.clear();
  launched_.store(0, std::memory_order_relaxed);
  count_.store(0, std::memory_order_release);
  drains_.EndAll();
}

void PendingRequests::BeginDrain(Drain* drain) {
  drain->Begin(submissions_, open());
  drains_.Add(drain);
}

std::vector<std::string_view> PendingRequests::Owed() {
  std::vector<std::string_view> owed;
  for (const LocalName* pending : names_.Pending()) {
    if (pending->direct.marked) owed.push_back(*pending->name);
  }
  for (const Request* request : deferred_) owed.push_back(*request->course.local->name);
  return owed;
}

}  // namespace hvd::rt
