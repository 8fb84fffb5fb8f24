// SPDX-License-Identifier: Apache-2.0
// The daemon's right to keep workers alive: it runs from the send time of the newest beat of its
// own that the driver has echoed. Bytes that were long under way prove nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/loop.h"
#include "base/mutex.h"
#include "daemon/shim/lease_word.h"

namespace hvd::daemon {

// Beats sent and heard. Pure.
class BeatBook {
 public:
  // The number of the next beat, sent at `now`.
  uint64_t Send(TimePoint now);
  // A beat came in. Returns the send time of the beat that it newly echoes, if any.
  std::optional<TimePoint> Hear(uint64_t number, uint64_t echo);
  uint64_t heard() const { return heard_; }

 private:
  struct Sent {
    uint64_t number;
    TimePoint at;
  };
  uint64_t last_ = 0;
  uint64_t heard_ = 0;
  std::deque<Sent> unechoed_;
};

// Pure.
class Lease {
 public:
  Lease(TimePoint start, std::chrono::duration<double> length)
      : length_(std::chrono::duration_cast<Clock::duration>(length)), until_(start + length_) {}

  void Renew(TimePoint echoed_beat_sent) {
    if (echoed_beat_sent + length_ > until_) until_ = echoed_beat_sent + length_;
  }
  TimePoint until() const { return until_; }

 private:
  Clock::duration length_;
  TimePoint until_;
};

// The lease while beats renew it on one thread and another looks whether it has ended. The shim's
// lease follows it in shared memory, so a beat wakes neither of them. Any thread.
class RenewedLease {
 public:
  // `word` outlives this.
  explicit RenewedLease(LeaseWord* word) : word_(word) {}

  void Begin(Lease lease);
  void Renew(TimePoint echoed_beat_sent);  // nothing before Begin
  TimePoint until() const;                 // the end of time before Begin
  // The shim's lease ends then, whatever is renewed.
  void FixForShim(TimePoint until);

 private:
  LeaseWord* const word_;
  mutable Mutex mutex_;
  std::optional<Lease> lease_ ABSL_GUARDED_BY(mutex_);
  bool fixed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hvd::daemon
