// SPDX-License-Identifier: Apache-2.0
// Messages of any length to one peer over a Transport, whose receives need a known length: a frame
// of one size, and what does not fit into it in parts, each a send of its own. Keeps one receive
// posted, and sends in flight as long as they need.
//
// The receiver makes room for one part at a time, so a message takes no more memory there than has
// come of it, and a part, whatever length its frame claims.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/transport/transport.h"

namespace hvd::rt {

struct FramePlace {
  Transport* transport = nullptr;  // borrowed, outlives the channel
  int peer = 0;
  uint16_t channel = 0;
  // The generation of the channel's user, the same on both sides; messages that an earlier user has
  // sent and nobody has read are dropped.
  uint64_t generation = 0;
  size_t part_bytes = size_t{4} << 20;  // the same on both sides
};

// Threads: as the Transport's, one caller at a time.
class FrameChannel {
 public:
  static constexpr size_t kFrameBytes = 512;
  // Several peers may be sent the same, which lives until all have it.
  using Message = std::shared_ptr<const std::string>;

  explicit FrameChannel(const FramePlace& place);

  absl::Status Send(Message message);
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
    Frame frame;
    Message message;
    std::deque<std::unique_ptr<TransportRequest>> sends;  // those that are not done, in order
  };
  absl::Status SendPart(Sending* sending, const void* data, size_t bytes);
  absl::Status PostReceive();
  void TakeFrame();
  size_t NextPart() const;

  const FramePlace place_;
  // Generations are apart by their tags already, but transports keep only some bits of those.
  const MessageTag tag_;
  std::deque<std::unique_ptr<Sending>> sending_;
  std::unique_ptr<Frame> incoming_ = std::make_unique<Frame>();
  std::string message_;   // what has come of the message whose frame has come; of another: nothing
  uint64_t missing_ = 0;  // of it
  std::unique_ptr<TransportRequest> receiving_;  // destroyed before what it writes to
};

}  // namespace hvd::rt
