// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_end.h"

#include <utility>

namespace hvd::rt {

StagedEnd::StagedEnd(std::shared_ptr<GpuDevice> device,
                     absl::Span<const std::unique_ptr<Request>> requests)
    : device_(std::move(device)),
      requests_(requests),
      on_host_(requests[0]->buffers.device.waits_on_host) {
  if (requests[0]->observer == nullptr) return;
  for (const auto& request : requests) told_.push_back(request.get());
}

StagedEnd::~StagedEnd() {
  if (!event_.valid()) return;
  const GpuDevice::Scope scope(*device_);
  event_ = {};
}

bool StagedEnd::WaitUntil(Clock::time_point end) {
  if (is_done()) return true;
  const MutexLock lock(&mutex_);
  while (!is_done()) {
    if (end == Clock::time_point::max()) {
      changed_.Wait(&mutex_);
    } else if (!changed_.WaitUntil(&mutex_, end)) {
      return is_done();
    }
  }
  return true;
}

absl::Status StagedEnd::Wait(const CallerOrder& order) {
  (void)WaitUntil(Clock::time_point::max());
  {
    const MutexLock lock(&mutex_);
    while (on_host_ && !finished_) changed_.Wait(&mutex_);
    if (!status_.ok()) return status_;
  }
  for (void* stream : order.streams()) {
    if (absl::Status ordered = WaitOn(stream); !ordered.ok()) return ordered;
  }
  return absl::OkStatus();
}

absl::Status StagedEnd::WaitOn(void* stream) {
  (void)WaitUntil(Clock::time_point::max());
  {
    const MutexLock lock(&mutex_);
    if (!status_.ok() || !event_.valid()) return status_;
  }
  const GpuDevice::Scope scope(*device_);
  return event_.MakeWait(static_cast<CudaStream>(stream));
}

void StagedEnd::BeDone(const absl::Status& status, GpuDevice::Event event) {
  event_ = std::move(event);
  for (const auto& request : requests_) request->result.status = status;
  {
    const MutexLock lock(&mutex_);
    status_ = status;
    for (const auto& request : requests_) request->done.store(true, std::memory_order_release);
    done_.store(true, std::memory_order_release);
    changed_.NotifyAll();
  }
  if (!status.ok()) TellFinished();
}

void StagedEnd::TellFinished() {
  {
    const MutexLock lock(&mutex_);
    if (std::exchange(finished_, true)) return;
    changed_.NotifyAll();
  }
  for (Request* request : std::exchange(told_, {})) request->observer->OnDone(request);
}

}  // namespace hvd::rt
