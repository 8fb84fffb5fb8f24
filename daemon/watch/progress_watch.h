// SPDX-License-Identifier: Apache-2.0
// Which ranks of this host have come to a stop in a process set, and for how long. Pure. Out of
// what the host page shows now and then; nothing of it needs a rank's help, so that one which is
// stopped is found too.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/loop.h"
#include "daemon/members/memory/rank_progress.h"

namespace hvd::daemon {

class ProgressWatch {
 public:
  // The same, with how long each has not moved: at least that long, at most one look more.
  std::vector<RankProgress> Take(std::vector<RankProgress> ranks, TimePoint now);

 private:
  struct Seen {
    RankProgress last;
    TimePoint since;
  };
  using Key = std::tuple<int, int, bool>;  // local rank, set, on its device

  std::map<Key, Seen> seen_;
};

// How long each process set has stood still: since its last rank moved. And each device for itself:
// others may go on for long before they need what it works on.
std::vector<double> StillBySet(const std::vector<RankProgress>& ranks);

}  // namespace hvd::daemon
