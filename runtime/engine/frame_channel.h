// Messages of any length to one peer over a Transport, whose receives need a known length: cut into
// frames of one size. Keeps one receive posted, and sends in flight as long as they need.
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

  // `transport` is borrowed and outlives the channel.
  FrameChannel(Transport* transport, int peer, uint16_t channel);

  absl::Status Send(const std::string& message);
  // The next whole message, if one has come. Does not make progress itself.
  absl::StatusOr<std::optional<std::string>> Receive();
  // Forgets sends that are done. True while some are not.
  absl::StatusOr<bool> HasUnsent();

 private:
  // The first eight bytes of a frame, then its part of the message.
  struct Frame {
    uint32_t rest = 0;  // bytes of the message from this frame on
    uint32_t reserved = 0;
    std::array<char, kFrameBytes - 8> bytes{};
  };
  struct Sending {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<TransportRequest> request;
  };
  absl::Status PostReceive();

  Transport* const transport_;
  const int peer_;
  const MessageTag tag_;
  std::deque<Sending> sending_;
  Frame incoming_;
  std::unique_ptr<TransportRequest> receiving_;
  std::string assembled_;
};

}  // namespace hvd
