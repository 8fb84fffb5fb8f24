// SPDX-License-Identifier: Apache-2.0
// How far a rank is with what it has under way, as its page shows it. Plain values.
#pragma once

#include <cstdint>
#include <string>

namespace hvd::daemon {

// A rank, or its device, that has something under way in a process set.
struct RankProgress {
  bool on_device = false;  // the rank has handed it over, and may do something else
  int local_rank = 0;
  int set = 0;
  std::string what;
  uint64_t work = 0;   // not 0: it executes what all have agreed on
  uint64_t moves = 0;  // these grow as it gets on; a device shows none
  uint64_t calls = 0;
  double still_s = 0;  // filled in by the watch
};

}  // namespace hvd::daemon
