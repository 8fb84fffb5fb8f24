// SPDX-License-Identifier: Apache-2.0
// The cost of ranks beside their collectives: when there is nothing to do, when a peer is late, and
// how much of a collective hides behind computing.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/hvd_bench/collective.h"

namespace bench {

// Share of a core that this process used, in percent, the largest of the ranks that waited.
struct Usage {
  double seconds = 0;
  double percent = 0;
};

// Nobody has anything to do.
Usage MeasureIdle(double seconds);
// Rank 0 comes late to an allreduce that all others wait in.
Usage MeasureLate(double seconds);

struct Overlap {
  double compute_us = 0;        // alone
  double communicate_us = 0;    // alone: submit, then wait
  std::vector<double> both_us;  // submit, compute, wait; ascending, the slowest rank's
};

// The computing takes as long as the communication.
Overlap MeasureOverlap(const Plan& plan, int steps);

}  // namespace bench
