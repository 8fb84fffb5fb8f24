// SPDX-License-Identifier: Apache-2.0
// How much may be under way on link A unacknowledged: what the link drains in about 100 ms,
// measured by the delay of the acknowledgements. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace hvd {

class CreditWindow {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;

  static constexpr uint64_t kSmallest = 4 << 10;
  static constexpr uint64_t kLargest = 8 << 20;
  static constexpr uint64_t kLargestPiece = 64 << 10;

  // Bytes that may be sent now as one piece: a quarter of the window at most, so that a piece's own
  // time on the link is not taken for a delay.
  uint64_t Piece() const;
  void Sent(uint64_t bytes, TimePoint now);
  // `total`: all bytes that the other side has received so far. A number too high counts as all.
  void Acked(uint64_t total, TimePoint now);

  uint64_t window() const { return window_; }
  uint64_t in_flight() const { return sent_ - acked_; }

 private:
  struct Mark {
    uint64_t total;
    TimePoint at;
    bool filled;  // the window was (nearly) used up when this was sent
  };

  uint64_t window_ = 16 << 10;
  uint64_t sent_ = 0;
  uint64_t acked_ = 0;
  uint64_t shrunk_at_ = 0;  // one shrink a window: until what was then in flight is acknowledged
  Clock::duration base_ = Clock::duration::max();  // shortest delay seen: the link without a queue
  std::deque<Mark> marks_;
};

}  // namespace hvd
