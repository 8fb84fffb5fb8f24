// SPDX-License-Identifier: Apache-2.0
#include "bench/device/gpu_memory.h"

#include <string>
#include <utility>

namespace gpu {
namespace {

// Never destroyed: a program that fails leaves it, and at its end the driver may have gone already.
std::unique_ptr<Side>& side = *new std::unique_ptr<Side>;

[[noreturn]] void Fail(const absl::Status& why) {
  throw Problem("the program's GPU: " + std::string(why.message()));
}

hvd::rt::CudaAddress AddressOf(const void* device) {
  return reinterpret_cast<hvd::rt::CudaAddress>(device);
}

}  // namespace

int CountGpus() {
  const auto driver = hvd::rt::CudaDriver::Load();
  if (!driver.ok()) throw Problem(std::string(driver.status().message()));
  return driver->devices();
}

Side::Side(int index) {
  auto driver = hvd::rt::CudaDriver::Load();
  if (!driver.ok()) Fail(driver.status());
  driver_ = std::make_unique<hvd::rt::CudaDriver>(*std::move(driver));
  auto device = hvd::rt::GpuDevice::Open(driver_.get(), index);
  if (!device.ok()) Fail(device.status());
  device_ = *std::move(device);
  const hvd::rt::GpuDevice::Scope scope(*device_);
  streams_ = {nullptr};
  while (streams_.size() < kStreams) {
    streams_.emplace_back();
    Must(device_->calls().create_stream(&streams_.back(), hvd::rt::kCudaStreamNonBlocking, 0),
         "create a stream");
  }
}

Side::~Side() {
  const hvd::rt::GpuDevice::Scope scope(*device_);
  for (const hvd::rt::CudaStream stream : streams_) {
    if (stream != nullptr) device_->calls().destroy_stream(stream);
  }
}

void Side::Open(int index) { side.reset(new Side(index)); }

Side& Side::Get() {
  static const bool made = [] {
    if (side == nullptr) Open(0);
    return true;
  }();
  (void)made;
  return *side;
}

void Side::Close() { side = nullptr; }

void Side::Must(hvd::rt::CudaResult result, const char* what) const {
  if (const absl::Status fine = driver_->Check(result, what); !fine.ok()) Fail(fine);
}

void Side::Await(hvd::rt::CudaStream stream) {
  const hvd::rt::GpuDevice::Scope scope(*device_);
  hvd::rt::CudaEvent event = nullptr;
  Must(device_->calls().create_event(&event, hvd::rt::kCudaEventDisableTiming), "create an event");
  Must(device_->calls().record_event(event, stream), "record an event");
  Must(device_->calls().await_event_here(event), "wait for an event");
  device_->calls().destroy_event(event);
}

Memory::Memory(size_t bytes) : bytes_(bytes) {
  const hvd::rt::GpuDevice::Scope scope(Side::Get().device());
  hvd::rt::CudaAddress address = 0;
  Side::Get().Must(Side::Get().device().calls().allocate(&address, bytes > 0 ? bytes : 1),
                   "device memory");
  data_ = reinterpret_cast<unsigned char*>(address);
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  const hvd::rt::GpuDevice::Scope scope(Side::Get().device());
  Side::Get().device().calls().free(AddressOf(data_));
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Upload(const void* host, unsigned char* device, size_t bytes, hvd::rt::CudaStream stream) {
  if (bytes == 0) return;
  const hvd::rt::GpuDevice::Scope scope(Side::Get().device());
  Side::Get().Must(Side::Get().device().calls().copy_in(AddressOf(device), host, bytes, stream),
                   "upload");
}

void Download(void* host, const unsigned char* device, size_t bytes, hvd::rt::CudaStream stream) {
  if (bytes == 0) return;
  {
    const hvd::rt::GpuDevice::Scope scope(Side::Get().device());
    Side::Get().Must(Side::Get().device().calls().copy_out(host, AddressOf(device), bytes, stream),
                     "download");
  }
  Side::Get().Await(stream);
}

}  // namespace gpu
