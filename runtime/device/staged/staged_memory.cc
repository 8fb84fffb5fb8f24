// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_memory.h"

#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {

absl::Status StagedMemory::Take(size_t bytes) {
  if (taken_) return absl::OkStatus();
  const auto taken = staging_.Take(bytes, device_);
  if (!taken.ok()) return taken.status();
  tensors_ = *taken;
  taken_ = true;
  return absl::OkStatus();
}

void* StagedMemory::GiveResult(void* memory, const int64_t* shape, int32_t ndim, int32_t dtype,
                               int32_t position) {
  size_t bytes = DtypeBytes(static_cast<hvd_dtype_t>(dtype));
  for (int32_t d = 0; d < ndim; ++d) bytes *= static_cast<size_t>(shape[d]);
  return static_cast<StagedMemory*>(memory)->TakeResult(position, bytes);
}

void* StagedMemory::TakeResult(int32_t position, size_t bytes) {
  const auto taken = staging_.Take(bytes, device_);
  if (!taken.ok()) return nullptr;
  const MutexLock lock(&mutex_);
  results_[position] = *taken;
  return taken->memory;
}

std::byte* StagedMemory::ResultAt(int32_t position) {
  const MutexLock lock(&mutex_);
  return results_[position].memory;
}

void StagedMemory::GiveBack() {
  staging_.Give(std::exchange(tensors_, {}));
  const MutexLock lock(&mutex_);
  for (const auto& [position, piece] : results_) staging_.Give(piece);
  results_.clear();
}

}  // namespace hvd::rt
