// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/launched_runs.h"

#include <utility>

namespace hvd::rt {

void LaunchedRuns::Add(std::shared_ptr<LaunchedEnd> end, DeviceEnd ended) {
  const MutexLock lock(&mutex_);
  runs_.push_back({std::move(end), std::move(ended)});
}

// A stream's events pass in order, so the first that has not passed ends the search.
bool LaunchedRuns::TellPassed() {
  std::vector<Told> told;
  bool more = false;
  {
    const MutexLock lock(&mutex_);
    while (!runs_.empty()) {
      const LaunchedEnd& end = *runs_.front().end;
      const GpuDevice::Scope scope(end.device());
      const absl::StatusOr<bool> passed = end.event().HasPassed();
      if (passed.ok() && !*passed) break;
      told.push_back({std::move(runs_.front().ended), passed.status()});
      runs_.pop_front();
    }
    more = !runs_.empty();
  }
  Tell(told);
  return more;
}

void LaunchedRuns::TellFailed(const absl::Status& status) {
  std::vector<Told> told;
  {
    const MutexLock lock(&mutex_);
    if (runs_.empty()) return;
    told.push_back({std::move(runs_.front().ended), status});
    runs_.pop_front();
  }
  Tell(told);
}

void LaunchedRuns::Tell(const std::vector<Told>& told) {
  for (const Told& one : told) one.ended(one.status);
}

// On a stream that nothing else waits for: what comes behind it must not wait for the host.
void LaunchedRuns::Hurry() {
  const MutexLock lock(&mutex_);
  if (runs_.empty() || std::exchange(runs_.back().hurried, true)) return;
  const LaunchedEnd& end = *runs_.back().end;
  const GpuDevice& device = end.device();
  const GpuDevice::Scope scope(device);
  // Should this fail, the looks at intervals find the end.
  if (!end.event().MakeWait(device.news_stream()).ok()) return;
  (void)device.calls().launch_host(device.news_stream(), poke_, arg_);
}

void LaunchedRuns::Clear() {
  std::deque<Run> dropped;
  const MutexLock lock(&mutex_);
  dropped.swap(runs_);
}

}  // namespace hvd::rt
