// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/device_runs.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rt {

// Its end may be told before Launch is back: so it is known before.
absl::Status DeviceRuns::Launch(const DeviceRun& run, const LaunchedRun& told) {
  const Unfinished::Number number = unfinished_.Add(told);
  absl::Status status = work_->Launch(
      run, [this, number](const absl::Status& ended) { unfinished_.Tell(number, ended); });
  if (!status.ok()) {
    unfinished_.Remove(number);
    return status;
  }
  notes_.runs().Launched(told);
  TellOldest();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Unfinished::Ended>> DeviceRuns::TakeEnded() {
  std::vector<Unfinished::Ended> ended = unfinished_.TakeEnded();
  for (const Unfinished::Ended& one : ended) {
    if (!one.status.ok()) {
      return absl::InternalError(absl::StrCat(one.run.what, " failed on the device of rank ",
                                              notes_.global_rank(), ": ", one.status.message()));
    }
    notes_.runs().Finished(one.run, one.end_ns);
  }
  TellOldest();
  return ended;
}

void DeviceRuns::TellOldest() {
  const Unfinished::Oldest oldest = unfinished_.oldest();
  notes_.SetDeviceWork(oldest.number, oldest.run);
}

void DeviceRuns::Abort(const absl::Status& cause) {
  if (work_ == nullptr || std::exchange(aborted_, true)) return;
  work_->Abort(cause);
  unfinished_.Clear();
}

}  // namespace hvd::rt
