// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staging.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace hvd::rt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kLarge = size_t{8} << 20;

}  // namespace

size_t Staging::SizeFor(size_t bytes) {
  size_t size = kLeast;
  while (size < bytes && size < kLarge) size *= 2;
  if (size >= bytes) return size;
  size_t step = kLarge / 8;
  while (step * 16 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

absl::StatusOr<Staging::Piece> Staging::Take(size_t bytes,
                                             const std::shared_ptr<GpuDevice>& device) {
  const size_t size = SizeFor(bytes);
  const MutexLock lock(&mutex_);
  std::vector<Idle>& idle = idle_[size];
  if (idle.empty()) {
    auto made = Make(size, device);
    if (!made.ok()) return made.status();
    idle.push_back(*std::move(made));
  }
  const Piece piece = {idle.back().memory, size};
  taken_[piece.memory] = std::move(idle.back());
  idle.pop_back();
  return piece;
}

// In the arena, else where there is room: then the engine reduces it as it does other memory.
absl::StatusOr<Staging::Idle> Staging::Make(size_t bytes,
                                            const std::shared_ptr<GpuDevice>& device) {
  Idle made;
  const absl::StatusOr<void*> given = arena_.Allocate(bytes + kPage);
  made.in_arena = given.ok();
  made.begin = given.ok() ? *given : aligned_alloc(kPage, bytes);
  if (made.begin == nullptr) {
    return absl::ResourceExhaustedError("there is no host memory for " + std::to_string(bytes) +
                                        " bytes of GPU tensors on their way");
  }
  const auto at = reinterpret_cast<uintptr_t>(made.begin);
  made.memory = reinterpret_cast<std::byte*>((at + kPage - 1) / kPage * kPage);
  const GpuDevice::Scope scope(*device);
  const bool pinned = device->calls().pin(made.memory, bytes, kCudaHostPortable) == kCudaSuccess;
  if (pinned) made.pinned_by = device;
  return made;
}

void Staging::Give(const Piece& piece) {
  if (piece.memory == nullptr) return;
  const MutexLock lock(&mutex_);
  const auto found = taken_.find(piece.memory);
  idle_[piece.bytes].push_back(std::move(found->second));
  taken_.erase(found);
}

void Staging::Clear() {
  const MutexLock lock(&mutex_);
  for (const auto& [size, all] : std::exchange(idle_, {})) {
    for (const Idle& idle : all) Free(idle);
  }
}

void Staging::Free(const Idle& idle) {
  if (idle.pinned_by != nullptr) {
    const GpuDevice::Scope scope(*idle.pinned_by);
    (void)idle.pinned_by->calls().unpin(idle.memory);
  }
  if (idle.in_arena) {
    (void)arena_.Free(idle.begin).ok();  // it is what Allocate gave
  } else {
    free(idle.begin);
  }
}

}  // namespace hvd::rt
