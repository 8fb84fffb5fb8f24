// SPDX-License-Identifier: Apache-2.0
// The host's GPUs, asked of NVIDIA's management library if it is there.
#pragma once

#include <string>
#include <vector>

#include "placement/gpu.h"

namespace hvd {

struct CardSearch {
  std::vector<GpuCard> cards;  // ordered by bus id: an index means the same card to everybody
  std::string problem;         // why none can be found; empty: the library has answered
};

// Loads the library for this call only. Takes as long as the driver does: some 100 ms where it has
// been asleep.
CardSearch FindCards(const char* library = "libnvidia-ml.so.1");

}  // namespace hvd
