// SPDX-License-Identifier: Apache-2.0
// How far a host's monotonic clock is from ours, from the heartbeats' round trips. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace hvd::cli {

// One beat of ours that came back: times in ns, ours by our clock, theirs by the host's.
struct BeatRoundTrip {
  int64_t sent = 0;            // ours
  int64_t heard_there = 0;     // theirs
  int64_t answered_there = 0;  // theirs: when the beat that echoes it was sent
  int64_t heard = 0;           // ours
};

// The clocks differ by half of what the two ways differ by: wrong by at most half of the time under
// way, so the quickest of the last round trips counts. Only the last ones, since clocks drift.
class ClockOffset {
 public:
  static constexpr size_t kKept = 32;  // 8 to 16 s of beats

  void Add(const BeatRoundTrip& trip);
  // Returns what to add to the host's clock to get ours; nothing before the first round trip.
  std::optional<int64_t> offset_ns() const;

 private:
  struct Sample {
    int64_t under_way;
    int64_t offset;
  };
  const Sample& Best() const;
  std::deque<Sample> samples_;
};

}  // namespace hvd::cli
