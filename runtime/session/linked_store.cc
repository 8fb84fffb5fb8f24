// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/linked_store.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/session/link_words.h"

namespace hvd::rt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostIdle = 8;
constexpr int64_t kLongestMs = 3600 * 1000;

int MillisecondsTo(std::optional<StoreCall::TimePoint> until) {
  if (!until.has_value()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLongestMs));
}

}  // namespace

class LinkedStore::Call : public StoreCall {
 public:
  Call(LinkedStore* store, std::unique_ptr<LinkSocket> socket)
      : store_(store), socket_(std::move(socket)) {}

  ~Call() override {
    if (socket_ != nullptr) socket_->HangUp();
  }

  // A request that cannot be sent may have been refused: then the reason comes back.
  void Send(const std::string& bytes) {
    if (sent_.ok()) sent_ = socket_->Send(bytes);
  }

  absl::StatusOr<bool> Await(std::optional<TimePoint> until) override {
    const auto over = [until] { return until.has_value() && Clock::now() >= *until; };
    while (!socket_->AwaitReadable(MillisecondsTo(until))) {
      if (over()) return false;
    }
    const auto frame = socket_->Receive(
        [&] { return over() ? absl::DeadlineExceededError("not yet") : absl::OkStatus(); });
    if (absl::IsDeadlineExceeded(frame.status())) return false;
    if (!frame.ok()) return sent_.ok() ? frame.status() : sent_;
    for (const int fd : frame->descriptors) close(fd);
    if (!DecodeStoreAnswer(frame->bytes, &answer_)) {
      return absl::InternalError("hvdd sent something else than the store's answer");
    }
    // hvdd may have closed one that it refuses, or that is one too many.
    const bool lasts =
        answer_.outcome != StoreOutcome::kRefused && answer_.outcome != StoreOutcome::kFull;
    if (lasts && sent_.ok()) store_->Keep(std::move(socket_));
    return true;
  }

 private:
  LinkedStore* const store_;
  std::unique_ptr<LinkSocket> socket_;  // until the answer has come
  absl::Status sent_;
};

absl::StatusOr<std::unique_ptr<StoreCall>> LinkedStore::Begin(const StoreRequest& request) {
  std::unique_ptr<LinkSocket> socket = TakeIdle();
  const bool fresh = socket == nullptr;
  if (fresh) {
    const absl::StatusOr<int> fd = LinkSocket::Connect(link_);
    if (!fd.ok()) return fd.status();
    socket = std::make_unique<LinkSocket>(*fd);
  }
  auto call = std::make_unique<Call>(this, std::move(socket));
  if (fresh) call->Send(EncodeStoreClaim(link_.token));
  call->Send(EncodeStoreRequest(request).Whole());
  return call;
}

std::unique_ptr<LinkSocket> LinkedStore::TakeIdle() {
  const MutexLock lock(&mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<LinkSocket> socket = std::move(idle_.back());
  idle_.pop_back();
  return socket;
}

void LinkedStore::Keep(std::unique_ptr<LinkSocket> socket) {
  const MutexLock lock(&mutex_);
  if (idle_.size() >= kMostIdle) return socket->HangUp();
  idle_.push_back(std::move(socket));
}

}  // namespace hvd::rt
