// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/gpus.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace hvd::rt {

absl::StatusOr<std::shared_ptr<GpuDevice>> Gpus::Find(int id) {
  const MutexLock lock(&mutex_);
  return FindLocked(id);
}

absl::StatusOr<std::shared_ptr<GpuDevice>> Gpus::FindLocked(int id) {
  const auto found = open_.find(id);
  if (found != open_.end()) return found->second;
  if (!driver_) driver_ = CudaDriver::Load();
  if (!driver_->ok()) {
    return absl::UnimplementedError(
        absl::StrCat("GPU ", id, " cannot be used here: ", driver_->status().message()));
  }
  const CudaDriver& driver = **driver_;
  if (id < 0 || id >= driver.devices()) {
    return absl::UnimplementedError(absl::StrCat("there is no GPU ", id, ": this process sees ",
                                                 driver.devices(), " (CUDA_VISIBLE_DEVICES)"));
  }
  auto opened = GpuDevice::Open(&driver, id);
  if (!opened.ok()) {
    return absl::UnimplementedError(
        absl::StrCat("GPU ", id, " cannot be used: ", opened.status().message()));
  }
  return open_.emplace(id, *std::move(opened)).first->second;
}

void Gpus::Close() {
  const MutexLock lock(&mutex_);
  std::set<int> kept;
  for (const auto& [memory, id] : given_) kept.insert(id);
  std::erase_if(open_, [&kept](const auto& open) { return kept.count(open.first) == 0; });
}

absl::StatusOr<void*> Gpus::Allocate(int id, size_t bytes) {
  const MutexLock lock(&mutex_);
  const auto device = FindLocked(id);
  if (!device.ok()) return device.status();
  const GpuDevice::Scope scope(**device);
  CudaAddress address = 0;
  const absl::Status made = (*device)->driver().Check(
      (*device)->calls().allocate(&address, bytes > 0 ? bytes : 1), "cuMemAlloc");
  if (!made.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("GPU ", id, " gives no ", bytes, " bytes: ", made.message()));
  }
  auto* memory = reinterpret_cast<void*>(address);
  given_[memory] = id;
  return memory;
}

absl::Status Gpus::Free(void* memory) {
  const MutexLock lock(&mutex_);
  const auto found = given_.find(memory);
  if (found == given_.end()) {
    return absl::InvalidArgumentError(
        "this is no device memory that hvd has given, or it was freed");
  }
  const GpuDevice& device = *open_.at(found->second);
  given_.erase(found);
  const GpuDevice::Scope scope(device);
  return device.driver().Check(device.calls().free(reinterpret_cast<CudaAddress>(memory)),
                               "cuMemFree");
}

absl::Status Gpus::Check() const {
  const MutexLock lock(&mutex_);
  for (const auto& [id, device] : open_) {
    if (absl::Status fine = device->Check(); !fine.ok()) {
      return absl::InternalError(absl::StrCat("GPU ", id, ": ", fine.message()));
    }
  }
  return absl::OkStatus();
}

int Gpus::DeviceOf(const void* memory) const {
  const MutexLock lock(&mutex_);
  const auto found = given_.find(memory);
  return found == given_.end() ? -1 : found->second;
}

}  // namespace hvd::rt
