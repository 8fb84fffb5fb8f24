// SPDX-License-Identifier: Apache-2.0
// A message under way, on either side. Shared by its request and by whatever moves it; all but the
// outcome is guarded by the transport's mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/transport/transport.h"

namespace hvd::rt {

// How it ended: written once, under the mutex; asked by the request's thread without it.
class Outcome {
 public:
  bool pending() const { return state_.load(std::memory_order_acquire) == State::kPending; }
  absl::StatusOr<bool> Test() const {
    const State state = state_.load(std::memory_order_acquire);
    if (state == State::kFailed) return status_;
    return state == State::kDone;
  }
  void Done() {
    if (pending()) state_.store(State::kDone, std::memory_order_release);
  }
  void Fail(const absl::Status& status) {
    if (!pending()) return;
    status_ = status;
    state_.store(State::kFailed, std::memory_order_release);
  }

 private:
  enum class State { kPending, kDone, kFailed };
  std::atomic<State> state_{State::kPending};
  absl::Status status_;
};

// Where a message comes to: memory of whoever waits for it, or our own until somebody does.
struct Inbound {
  MessageTag tag;
  std::byte* data = nullptr;  // null: what comes is thrown away
  size_t bytes = 0;
  size_t landed = 0;   // of them
  bool begun = false;  // its bytes have begun to come
  uint64_t id = 0;     // by which its sender was told to send; 0: it was not
  Outcome outcome;
  // For a message that came before it was waited for:
  std::unique_ptr<std::byte[]> own = {};
  uint64_t announced = 0;                 // not 0: it has not come, its sender asks to send it
  std::shared_ptr<Inbound> receive = {};  // who waits by now
};

struct Outbound {
  MessageTag tag;
  const std::byte* data = nullptr;
  size_t bytes = 0;
  size_t written = 0;  // of them
  bool begun = false;  // some of it is on the wire: the rest must follow
  Outcome outcome;
  std::unique_ptr<std::byte[]> own = {};  // of a send that was abandoned
};

}  // namespace hvd::rt
