// SPDX-License-Identifier: Apache-2.0
// Times calls the way the peers are timed: buffers rewritten and a barrier before each call, both
// untimed; a call's time is the slowest rank's.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "bench/hvd_bench/collective.h"

namespace bench {

// Calls worth making for a tensor of this size.
int IterationsFor(size_t bytes);

// Microseconds of `call` on the slowest rank; the same on every rank. All ranks begin together.
double SlowestRank(const std::function<void()>& call);
// One refilled and checked call.
double TimeOne(Collective* collective);

// Times of `iterations` calls in microseconds, ascending; the same on every rank. Throws
// WrongValue.
std::vector<double> Measure(int iterations, Collective* collective);

}  // namespace bench
