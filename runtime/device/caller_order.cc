// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/caller_order.h"

#include <algorithm>
#include <utility>

namespace hvd::rt {

CallerOrder::~CallerOrder() {
  if (ready_.empty()) return;
  const GpuDevice::Scope scope(*device_);
  ready_.clear();
}

absl::Status CallerOrder::Note(absl::Span<const std::unique_ptr<Request>> requests) {
  for (const auto& request : requests) {
    const DevicePlace& place = request->buffers.device;
    ready_event_ = place.ready_event;
    if (!request->signature.is_group()) streams_.push_back(place.stream);
    for (const RequestPart& part : request->buffers.parts) streams_.push_back(part.stream);
  }
  std::sort(streams_.begin(), streams_.end());
  streams_.erase(std::unique(streams_.begin(), streams_.end()), streams_.end());
  absl::Status noted;
  for (void* stream : streams_) {
    if (noted.ok()) noted = NoteStream(stream);
  }
  return noted;
}

absl::Status CheckNotCaptured(const GpuDevice& device, CudaStream stream) {
  CudaCapture state = kCudaNotCapturing;
  absl::Status asked =
      device.driver().Check(device.calls().capture_state(stream, &state), "cuStreamIsCapturing");
  if (!asked.ok() || state == kCudaNotCapturing) return asked;
  return absl::UnimplementedError(
      "the tensor's stream is being captured into a CUDA graph, and a graph cannot hold calls "
      "that other ranks take part in; call hvd outside the capture");
}

absl::Status CallerOrder::NoteStream(void* stream) {
  auto* const handle = static_cast<CudaStream>(stream);
  const absl::Status asked = CheckNotCaptured(*device_, handle);
  if (!asked.ok() || ready_event_ != nullptr) return asked;
  auto event = device_->TakeEvent();
  if (!event.ok()) return event.status();
  ready_.push_back(*std::move(event));
  return ready_.back().Record(handle);
}

absl::Status CallerOrder::MakeWait(CudaStream stream) const {
  absl::Status status;
  if (ready_event_ != nullptr) {
    status = device_->driver().Check(
        device_->calls().await_event(stream, static_cast<CudaEvent>(ready_event_), 0),
        "cuStreamWaitEvent");
  }
  for (const GpuDevice::Event& event : ready_) {
    if (status.ok()) status = event.MakeWait(stream);
  }
  return status;
}

LaunchedEnd::~LaunchedEnd() {
  const GpuDevice::Scope scope(*device_);
  event_ = {};
}

}  // namespace hvd::rt
