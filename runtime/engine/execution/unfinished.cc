// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/unfinished.h"

#include <utility>

#include "runtime/engine/watch/timeline.h"

namespace hvd::rt {

Unfinished::Number Unfinished::Add(LaunchedRun run) {
  {
    const MutexLock lock(&told_mutex_);
    const size_t most = told_.size() + runs_.size() + 1;  // each is told once
    if (told_.capacity() < most) told_.reserve(2 * most);
  }
  runs_.emplace(last_ + 1, std::move(run));
  count_.store(runs_.size(), std::memory_order_release);
  return ++last_;
}

void Unfinished::Remove(Number number) {
  runs_.erase(number);
  count_.store(runs_.size(), std::memory_order_release);
}

void Unfinished::Tell(Number number, const absl::Status& status) {
  {
    const MutexLock lock(&told_mutex_);
    told_.push_back({number, status, Timeline::Now()});
    has_told_.store(true, std::memory_order_release);
  }
  on_told_();
}

std::vector<Unfinished::Ended> Unfinished::TakeEnded() {
  std::vector<Told> told;
  {
    const MutexLock lock(&told_mutex_);
    told = told_;
    told_.clear();  // its room stays
    has_told_.store(false, std::memory_order_release);
  }
  std::vector<Ended> ended;
  ended.reserve(told.size());
  for (Told& one : told) {
    const auto found = runs_.find(one.number);
    if (found == runs_.end()) continue;
    ended.push_back({std::move(found->second), std::move(one.status), one.end_ns});
    runs_.erase(found);
  }
  count_.store(runs_.size(), std::memory_order_release);
  return ended;
}

Unfinished::Oldest Unfinished::oldest() const {
  if (runs_.empty()) return {};
  const auto first = runs_.begin();
  return {first->first, &first->second};
}

void Unfinished::Clear() {
  runs_.clear();
  count_.store(0, std::memory_order_release);
}

}  // namespace hvd::rt
