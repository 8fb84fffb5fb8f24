// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/progress_watch.h"

#include <algorithm>

namespace hvd::daemon {
namespace {

bool Same(const RankProgress& a, const RankProgress& b) {
  return a.work == b.work && a.moves == b.moves && a.calls == b.calls;
}

}  // namespace

std::vector<RankProgress> ProgressWatch::Take(std::vector<RankProgress> ranks, TimePoint now) {
  std::map<Key, Seen> seen;
  for (RankProgress& rank : ranks) {
    const Key key = {rank.local_rank, rank.set, rank.on_device};
    const auto known = seen_.find(key);
    const bool still = known != seen_.end() && Same(known->second.last, rank);
    const TimePoint since = still ? known->second.since : now;
    rank.still_s = std::chrono::duration<double>(now - since).count();
    seen[key] = {rank, since};
  }
  seen_ = std::move(seen);
  return ranks;
}

std::vector<double> StillBySet(const std::vector<RankProgress>& ranks) {
  std::map<int, double> by_set;
  std::vector<double> still_s;
  for (const RankProgress& rank : ranks) {
    if (rank.on_device) {
      still_s.push_back(rank.still_s);
      continue;
    }
    const auto [at, is_new] = by_set.try_emplace(rank.set, rank.still_s);
    if (!is_new) at->second = std::min(at->second, rank.still_s);
  }
  for (const auto& [set, seconds] : by_set) still_s.push_back(seconds);
  return still_s;
}

}  // namespace hvd::daemon
