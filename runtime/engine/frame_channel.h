// Messages of any length to one peer over a Transport, whose receives need a known length: a frame
// of one size, and what does not fit into it as one more send. Keeps one receive posted, and sends
// in flight as long as they need.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/transport/transport.h"

namespace hvd {

// Threads: as the Transport's, one caller at a time.
class FrameChannel {
 public:
  static constexpr size_t kFrameBytes = 512;
  static constexpr size_t kMaxMessage = 16u << 20;

  // `transport` is borrowed and outlives the channel. `generation`: of the channel's user, the same
  // on both sides; what an earlier one has sent and nobody has read is dropped.
  FrameChannel(Transport* transport, int peer, uint16_t channel, uint64_t generation = 0);

  absl::Status Send(const std::string& message);
  // The next whole message, if one has come. Does not make progress itself.
  absl::StatusOr<std::optional<std::string>> Receive();
  // Forgets sends that are done. True while some are not.
  absl::StatusOr<bool> HasUnsent();

 private:
  // The length of the whole message, whose it is, then its beginning.
  struct Frame {
    uint64_t length = 0;
    uint64_t generation = 0;
    std::array<char, kFrameBytes - 16> bytes{};
  };
  struct Sending {
    std::unique_ptr<Frame> frame;
    std::string rest;
    std::unique_ptr<TransportRequest> frame_sent, rest_sent;
  };
  absl::Status PostReceive(void* data, size_t bytes);

  Transport* const transport_;
  const int peer_;
  // Generations are apart by their tags already, but transports keep only some bits of those.
  const MessageTag tag_;
  const uint64_t generation_;
  std::deque<std::unique_ptr<Sending>> sending_;
  std::unique_ptr<Frame> incoming_ = std::make_unique<Frame>();
  std::string rest_;  // of the message whose frame has come
  bool receives_rest_ = false;
  std::unique_ptr<TransportRequest> receiving_;  // destroyed before what it writes to
};

}  // namespace hvd
