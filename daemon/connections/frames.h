// SPDX-License-Identifier: Apache-2.0
// Link B's frames: uint32 little-endian length, then one message. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace hvd::daemon {

inline constexpr size_t kMostFrameIn = 1 << 20;  // from a worker

std::string Frame(std::string_view message);

// Cuts whole frames out of a stream's bytes.
class FrameCutter {
 public:
  explicit FrameCutter(size_t most = kMostFrameIn) : most_(most) {}
  void Take(std::string_view bytes) { buffer_ += bytes; }
  // True: the next message is in `message`.
  bool Next(std::string* message);
  // A length beyond the most came: not one of ours.
  bool broken() const { return broken_; }
  // Returns the bytes that have come of the next message: another cutter goes on with them.
  std::string TakeRest() { return std::move(buffer_); }

 private:
  size_t most_;
  std::string buffer_;
  bool broken_ = false;
};

}  // namespace hvd::daemon
