// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pending/pending_requests.h"

#include <utility>

namespace hvd {

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

void PendingRequests::EndBroken(Request* request) {
  // First: whoever waits for `request` may free all of them when it is done.
  for (const auto& other : request->course.others) EndBroken(other.get());
  request->result.status = broken_;
  End(request);
}

void PendingRequests::EndAll(const absl::Status& why) {
  if (broken_.ok()) broken_ = why;
  names_.ForEachPending([this](LocalName* name) {
    kEngineLock.AssertHeld();
    EndBroken(std::exchange(name->pending, nullptr));
  });
  for (Request* request : deferred_) EndBroken(request);
  deferred_.clear();
  launched_.store(0, std::memory_order_relaxed);
  count_.store(0, std::memory_order_release);
  for (Drain* drain : drains_) drain->left_ = 0;
}

// In the order in which they ended.
Request* PendingRequests::TakeEnded() {
  if (ended_ == nullptr) return nullptr;
  Request* newest = std::exchange(ended_, nullptr);
  ++telling_;
  Request* oldest = nullptr;
  while (newest != nullptr) {
    Request* const before = std::exchange(newest->course.next_ended, oldest);
    oldest = std::exchange(newest, before);
  }
  return oldest;
}

void PendingRequests::BeginDrain(Drain* drain) {
  drain->last_ = submissions_;
  drain->left_ = open();
  drains_.push_back(drain);
}

void PendingRequests::EndDrain(Drain* drain) { std::erase(drains_, drain); }

std::vector<std::string_view> PendingRequests::Owed() {
  std::vector<std::string_view> owed;
  for (const LocalName* pending : names_.Pending()) {
    if (pending->direct.marked) owed.push_back(*pending->name);
  }
  for (const Request* request : deferred_) owed.push_back(*request->course.local->name);
  return owed;
}

}  // namespace hvd
