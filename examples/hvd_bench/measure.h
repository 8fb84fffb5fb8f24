// Times one collective the way the peers are timed: buffers rewritten and a barrier before each
// call, both untimed; a call's time is the slowest rank's.
#pragma once

#include <cstddef>
#include <vector>

#include "examples/hvd_bench/collective.h"

namespace bench {

// Calls worth making for a tensor of this size.
int IterationsFor(size_t bytes);

// Times of `iterations` calls in microseconds, ascending; the same on every rank. Throws
// WrongValue.
std::vector<double> Measure(int iterations, Collective* collective);

}  // namespace bench
