// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/gpu_device.h"

#include <utility>

namespace hvd::rt {

absl::StatusOr<std::unique_ptr<GpuDevice>> GpuDevice::Open(const CudaDriver* driver, int index) {
  std::unique_ptr<GpuDevice> device(new GpuDevice(driver, index));
  if (absl::Status begun = device->Begin(); !begun.ok()) return begun;
  return device;
}

absl::Status GpuDevice::Begin() {
  absl::Status status = driver_.Check(calls().device(&device_, index_), "cuDeviceGet");
  if (!status.ok()) return status;
  status = driver_.Check(calls().retain_context(&context_, device_), "cuDevicePrimaryCtxRetain");
  if (!status.ok()) return status;
  const Scope scope(*this);
  int least = 0, greatest = 0;
  status = driver_.Check(calls().priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
  if (!status.ok()) return status;
  for (CudaStream* stream : {&stream_, &host_stream_, &shared_stream_, &news_stream_}) {
    if (!status.ok()) break;
    status = driver_.Check(calls().create_stream(stream, kCudaStreamNonBlocking, greatest),
                           "cuStreamCreateWithPriority");
  }
  return status;
}

// Errors are nobody's here: a device that is lost takes all this with it.
GpuDevice::~GpuDevice() {
  if (context_ == nullptr) return;
  {
    const Scope scope(*this);
    const MutexLock lock(&mutex_);
    for (const CudaEvent event : pool_) calls().destroy_event(event);
    for (const CudaStream stream : {stream_, host_stream_, shared_stream_, news_stream_}) {
      if (stream != nullptr) calls().destroy_stream(stream);
    }
  }
  calls().release_context(device_);
}

GpuDevice::Scope::Scope(const GpuDevice& device) : calls_(device.calls()) {
  calls_.push_context(device.context_);
}

GpuDevice::Scope::~Scope() {
  CudaContext mine = nullptr;
  calls_.pop_context(&mine);
}

absl::StatusOr<CudaUuid> GpuDevice::Uuid() const {
  CudaUuid uuid = {};
  absl::Status asked = driver_.Check(calls().device_uuid(&uuid, device_), "cuDeviceGetUuid");
  if (!asked.ok()) return asked;
  return uuid;
}

absl::Status GpuDevice::Check() const {
  const Scope scope(*this);
  for (const CudaStream stream : {stream_, host_stream_}) {
    const CudaResult result = calls().query_stream(stream);
    if (result == kCudaNotReady) continue;
    if (absl::Status fine = driver_.Check(result, "cuStreamQuery"); !fine.ok()) return fine;
  }
  return absl::OkStatus();
}

bool GpuDevice::is_idle() const {
  const Scope scope(*this);
  return calls().query_stream(stream_) != kCudaNotReady &&
         calls().query_stream(host_stream_) != kCudaNotReady;
}

absl::StatusOr<GpuDevice::Event> GpuDevice::TakeEvent() {
  {
    const MutexLock lock(&mutex_);
    if (!pool_.empty()) {
      const CudaEvent event = pool_.back();
      pool_.pop_back();
      return Event(this, event);
    }
  }
  CudaEvent event = nullptr;
  absl::Status made =
      driver_.Check(calls().create_event(&event, kCudaEventDisableTiming), "cuEventCreate");
  if (!made.ok()) return made;
  return Event(this, event);
}

void GpuDevice::GiveEvent(CudaEvent event) {
  const MutexLock lock(&mutex_);
  pool_.push_back(event);
}

GpuDevice::Event& GpuDevice::Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(event_, other.event_);
  return *this;
}

GpuDevice::Event::~Event() {
  if (event_ != nullptr) device_->GiveEvent(event_);
}

absl::Status GpuDevice::Event::Record(CudaStream stream) {
  return device_->driver_.Check(device_->calls().record_event(event_, stream), "cuEventRecord");
}

absl::Status GpuDevice::Event::MakeWait(CudaStream stream) const {
  return device_->driver_.Check(device_->calls().await_event(stream, event_, 0),
                                "cuStreamWaitEvent");
}

absl::Status GpuDevice::Event::AwaitHere() const {
  return device_->driver_.Check(device_->calls().await_event_here(event_), "cuEventSynchronize");
}

absl::StatusOr<bool> GpuDevice::Event::HasPassed() const {
  const CudaResult result = device_->calls().query_event(event_);
  if (result == kCudaNotReady) return false;
  absl::Status status = device_->driver_.Check(result, "cuEventQuery");
  if (!status.ok()) return status;
  return true;
}

}  // namespace hvd::rt
