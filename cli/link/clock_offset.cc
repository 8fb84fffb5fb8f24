// SPDX-License-Identifier: Apache-2.0
#include "cli/link/clock_offset.h"

#include <algorithm>

namespace hvd::cli {

void ClockOffset::Add(const BeatRoundTrip& trip) {
  Sample sample;
  sample.under_way = (trip.heard - trip.sent) - (trip.answered_there - trip.heard_there);
  if (sample.under_way < 0) return;  // clocks do not run so: not a round trip
  sample.offset = ((trip.sent - trip.heard_there) + (trip.heard - trip.answered_there)) / 2;
  samples_.push_back(sample);
  if (samples_.size() > kKept) samples_.pop_front();
}

const ClockOffset::Sample& ClockOffset::Best() const {
  return *std::min_element(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) {
    return a.under_way < b.under_way;
  });
}

std::optional<int64_t> ClockOffset::offset_ns() const {
  if (samples_.empty()) return std::nullopt;
  return Best().offset;
}

}  // namespace hvd::cli
