// SPDX-License-Identifier: Apache-2.0
#include "proto/credit_window.h"

#include <catch2/catch.hpp>
#include <deque>

namespace hvd {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = CreditWindow::Clock;
using TimePoint = CreditWindow::TimePoint;

// A link of fixed rate with a queue before it, and a receiver that acknowledges every piece.
class Link {
 public:
  Link(double bytes_per_second, microseconds round_trip)
      : rate_(bytes_per_second), round_trip_(round_trip) {}

  // Floods the link for `length` through `window`. Sets the worst queueing delay seen after `warm`.
  uint64_t Flood(CreditWindow* window, milliseconds length, milliseconds warm) {
    const TimePoint start{};
    uint64_t received = 0;
    TimePoint free = start;  // when the link has sent all that was queued
    for (TimePoint now = start; now < start + length; now += microseconds(200)) {
      while (!under_way_.empty() && under_way_.front().acked_at <= now) {
        received = under_way_.front().total;
        window->Acked(received, now);
        under_way_.pop_front();
      }
      const uint64_t bytes = window->Piece();
      if (bytes == 0) continue;
      free = std::max(free, now) + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(bytes / rate_));
      if (now > start + warm) worst_queue_ = std::max(worst_queue_, free - now);
      window->Sent(bytes, now);
      total_ += bytes;
      under_way_.push_back({total_, free + round_trip_});
    }
    return received;
  }
  Clock::duration worst_queue() const { return worst_queue_; }

 private:
  struct Piece {
    uint64_t total;
    TimePoint acked_at;
  };
  const double rate_;
  const microseconds round_trip_;
  uint64_t total_ = 0;
  std::deque<Piece> under_way_;
  Clock::duration worst_queue_{};
};

TEST_CASE("a flooded link of 1 Mbit/s never holds a beat for long and is used well") {
  CreditWindow window;
  Link link(125000, milliseconds(5));
  const uint64_t received = link.Flood(&window, milliseconds(20000), milliseconds(0));
  CHECK(link.worst_queue() < milliseconds(250));  // the first window included
  CHECK(received > 0.9 * 125000 * 20);
}

TEST_CASE("after the start about 100 ms of the drain rate are under way") {
  CreditWindow window;
  Link link(2e6 / 8, milliseconds(20));
  link.Flood(&window, milliseconds(20000), milliseconds(2000));
  CHECK(link.worst_queue() < milliseconds(150));
}

TEST_CASE("a fast link gets a large window") {
  CreditWindow window;
  Link link(1e9, milliseconds(1));
  const uint64_t received = link.Flood(&window, milliseconds(2000), milliseconds(0));
  CHECK(window.window() >= 1 << 20);
  CHECK(received > 0.5e9);
}

TEST_CASE("a long way is not taken for a queue") {
  CreditWindow window;
  Link link(10e6, milliseconds(150));
  const uint64_t received = link.Flood(&window, milliseconds(20000), milliseconds(0));
  CHECK(received > 0.6 * 10e6 * 20);
}

TEST_CASE("an acknowledgement of more than was sent counts as all") {
  CreditWindow window;
  window.Sent(1000, TimePoint{});
  window.Acked(1 << 30, TimePoint{} + milliseconds(1));
  CHECK(window.in_flight() == 0);
}

}  // namespace
}  // namespace hvd
