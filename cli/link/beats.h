// SPDX-License-Identifier: Apache-2.0
// The lease on one host: which beats were sent and when, and which came back. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"
#include "proto/deadlines.h"

namespace hvd::cli {

// How far beats are apart: so that a lease of 3 s holds a dozen, and one that may take its time is
// not beaten for at the cost of an idle job.
inline double BeatPeriodS(double lease_s) { return std::clamp(lease_s / 20, 0.25, 0.5); }

// Times are seconds of the monotonic clock. Only an echoed beat proves anything: old bytes that a
// paused connection delivers late carry old echoes.
class BeatLease {
 public:
  // The link opened at `now`: that counts as beat 0's send time.
  BeatLease(double now, double lease_s) : lease_s_(lease_s), proven_(now) {}

  // The number of the beat that is sent at `now`.
  uint64_t Send(double now);
  // The daemon's beat `number` came, with `echo`, the newest of ours that it heard.
  // Returns when the echoed beat was sent, the first time that it is echoed.
  std::optional<double> Hear(uint64_t number, uint64_t echo);

  uint64_t newest() const { return next_ - 1; }  // sent
  uint64_t heard() const { return heard_; }      // to be echoed with the next beat
  // When the host is given up: half a second after the daemon has ended itself.
  double deadline() const { return proven_ + lease_s_ + SecondsOf(kHostLeaseMargin); }
  double proven() const { return proven_; }

 private:
  struct Sent {
    uint64_t number;
    double at;
  };
  double lease_s_;
  double proven_;  // send time of the newest echoed beat
  uint64_t next_ = 1;
  uint64_t heard_ = 0;
  std::deque<Sent> sent_;  // not yet echoed
};

}  // namespace hvd::cli
