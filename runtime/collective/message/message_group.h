// SPDX-License-Identifier: Apache-2.0
// Some ranks of a job over a message transport: sends and receives by index in the group, waiting,
// and what happens when the transport breaks (the epoch ends). The algorithms over it:
// message_collectives.cc, ring.cc, message_*.cc.
//
// Every member calls the same operations in the same order; each operation has a step of its own in
// the tag, so that two never meet, even when both are under way. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/waiter.h"

namespace hvd::rt {

struct MessageGroupOptions {
  Waiter* waiter = nullptr;        // borrowed; has the transport set
  Transport* transport = nullptr;  // borrowed
  std::vector<int> ranks;          // the members by index, as global ranks
  int index = 0;                   // of this rank in `ranks`
  uint16_t channel = 0;
  // 0 or 1. No two groups that share two ranks have the same channel and lane.
  uint32_t lane = 0;
};

class MessageGroup {
 public:
  // Whom to, and in which operation.
  struct Route {
    int peer = 0;
    uint32_t step = 0;
  };
  // A message under way, or none.
  struct Request {
    std::unique_ptr<TransportRequest> message;
    bool receives = false;
    Route route = {};
  };

  explicit MessageGroup(MessageGroupOptions options) : options_(std::move(options)) {}

  int rank() const { return options_.index; }
  int size() const { return static_cast<int>(options_.ranks.size()); }

  // Starts the next operation: step() is its own from here on.
  absl::Status Begin();
  uint32_t step() const { return step_; }

  // Errors end the epoch: they come back as Aborted with the cause.
  absl::Status Send(Route route, const void* data, size_t bytes, Request* request);
  absl::Status Receive(Route route, void* data, size_t bytes, Request* request);
  absl::Status Send(int peer, const void* data, size_t bytes, Request* request) {
    return Send({peer, step_}, data, bytes, request);
  }
  absl::Status Receive(int peer, void* data, size_t bytes, Request* request) {
    return Receive({peer, step_}, data, bytes, request);
  }
  // Waits until the request is done; drops it. Null is done.
  absl::Status Await(Request* request);
  absl::Status AwaitAll(std::vector<Request>* requests);
  // Null or done: true, and it is dropped.
  absl::StatusOr<bool> TakeIfDone(Request* request);

  Waiter* waiter() const { return options_.waiter; }

 private:
  absl::Status EndEpoch(const absl::Status& cause, int peer);
  // Drops it: it is done.
  void Take(Request* request);

  const MessageGroupOptions options_;
  uint32_t step_ = 0;
};

}  // namespace hvd::rt
