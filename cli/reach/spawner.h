// SPDX-License-Identifier: Apache-2.0
// The spawner: the only process of hvdrun that starts others. It has no threads and never touches
// gRPC, so it may fork at any time. Each child is a session of its own that dies with it.
#pragma once

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace hvd::cli {

// More hosts than this are not greeted at once: the driver asks for the next when one has spoken.
inline constexpr int kStartsAtOnce = 64;

struct SpawnerPlan {
  // By host, of those that it starts by itself. The command of any other comes with the word to
  // start it.
  std::vector<std::vector<std::string>> argv;
  double patience_s = 0;  // how long children may take to end after the driver is gone
};

// Starts the hosts of the plan at once, then what the driver asks for, looks for hosts among it.
// Each child's stdin and stdout are one socket, whose other end goes to the driver with the read
// end of its stderr. Returns when the driver is gone and every child has ended or was killed.
void RunSpawner(const SpawnerPlan& plan, Descriptor driver);

}  // namespace hvd::cli
