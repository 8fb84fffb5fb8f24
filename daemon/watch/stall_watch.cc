// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/stall_watch.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace hvd::daemon {
Clock::duration StallWatch::period() const {
  const double limit_s =
      policy_.abort_s > 0 ? std::min(policy_.warn_s, policy_.abort_s) : policy_.warn_s;
  const double seconds = std::clamp(limit_s / 4, 0.1, 15.0);
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void StallWatch::KeepLate(const PendingAnswers& answers, Since* since) const {
  std::set<std::pair<int, int>> given;  // local rank, set
  for (const RankPending& answer : answers.given)
    given.insert({answer.local_rank, answer.list.set});
  for (const auto& [key, began] : since_) {
    const auto& [rank, set, sequence] = key;
    const bool late =
        std::find(answers.late.begin(), answers.late.end(), rank) != answers.late.end();
    if (late && given.count({rank, set}) == 0) since->insert({key, began});
  }
}

std::vector<WaitingTensor> StallWatch::Take(const PendingAnswers& answers, TimePoint now) {
  Since since;
  KeepLate(answers, &since);
  std::map<std::pair<int, std::string>, WaitingTensor> waiting;
  for (const RankPending& answer : answers.given) {
    for (const PendingTensor& tensor : answer.list.tensors) {
      const Key key = {answer.local_rank, answer.list.set, tensor.sequence};
      const auto known = since_.find(key);
      const TimePoint began = known != since_.end() ? known->second : now;
      since[key] = began;
      WaitingTensor& entry = waiting[{answer.list.set, tensor.name}];
      entry.set = answer.list.set;
      entry.name = tensor.name;
      entry.what = tensor.what;
      entry.waited_s = std::max(entry.waited_s, SecondsOf(now - began));
      entry.moving = tensor.moving && (entry.local_ranks.empty() || entry.moving);
      entry.local_ranks.push_back(answer.local_rank);
      entry.members = tensor.between.empty() ? answer.list.members : tensor.between;
    }
  }
  since_ = std::move(since);
  std::vector<WaitingTensor> sorted;
  for (auto& [key, tensor] : waiting) sorted.push_back(std::move(tensor));
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const WaitingTensor& a, const WaitingTensor& b) { return a.waited_s > b.waited_s; });
  return sorted;
}

bool StallWatch::Due(const std::vector<double>& waits_s, TimePoint now) {
  const double since_s = SecondsOf(now - std::exchange(looked_, now));
  return std::any_of(waits_s.begin(), waits_s.end(), [&](double wait_s) {
    const double before_s = std::max(0.0, wait_s - since_s);
    const bool warn = std::floor(wait_s / policy_.warn_s) > std::floor(before_s / policy_.warn_s);
    const bool abort =
        policy_.abort_s > 0 && wait_s >= policy_.abort_s && before_s < policy_.abort_s;
    return warn || abort;
  });
}

}  // namespace hvd::daemon
