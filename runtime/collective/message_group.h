// Some ranks of a job over a message transport: sends and receives by index in the group, waiting,
// and what happens when the transport breaks (the epoch ends). The algorithms in
// message_collectives.cc and ring.cc are written over this.
//
// Every member calls the same operations in the same order; each operation has a step of its own in
// the tag, so that two never meet. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/waiter.h"

namespace hvd {

struct MessageGroupOptions {
  Waiter* waiter = nullptr;        // borrowed; has the transport set
  Transport* transport = nullptr;  // borrowed
  std::vector<int> ranks;          // the members by index, as global ranks
  int index = 0;                   // of this rank in `ranks`
  uint16_t channel = 0;            // no two groups that share two ranks share a channel
};

class MessageGroup {
 public:
  using Request = std::unique_ptr<TransportRequest>;

  explicit MessageGroup(MessageGroupOptions options) : options_(std::move(options)) {}

  int rank() const { return options_.index; }
  int size() const { return static_cast<int>(options_.ranks.size()); }

  // Starts the next operation: the messages from here on carry its step.
  absl::Status Begin();
  // Errors end the epoch: they come back as Aborted with the cause.
  absl::Status Send(int peer, const void* data, size_t bytes, Request* request);
  absl::Status Receive(int peer, void* data, size_t bytes, Request* request);
  // Waits until the request is done; drops it.
  absl::Status Await(Request* request);
  // Waits until one of two is done; null ones are not looked at.
  absl::Status AwaitEither(const Request& one, const Request& other);
  // True when the request is done; drops it then.
  absl::StatusOr<bool> TakeIfDone(Request* request);

 private:
  absl::Status EndEpoch(const absl::Status& cause, int peer);

  const MessageGroupOptions options_;
  uint32_t step_ = 0;
};

}  // namespace hvd
