// SPDX-License-Identifier: Apache-2.0
// The host's monotonic clock. All processes of a host see the same one, so its times may travel
// between them; those of two hosts have nothing in common. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace hvd {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC
using TimePoint = Clock::time_point;

constexpr double SecondsOf(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}
constexpr double SecondsOf(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

// Now, since the clock's beginning.
inline int64_t MonotonicNanoseconds() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}
inline double MonotonicSeconds() { return SecondsOf(Clock::now().time_since_epoch()); }

}  // namespace hvd
