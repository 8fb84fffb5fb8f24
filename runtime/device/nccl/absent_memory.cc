// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/absent_memory.h"

#include <algorithm>

#include "runtime/engine/execution/neutral.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {
namespace {

constexpr size_t kPieceElements = size_t{16} << 10;

}  // namespace

AbsentMemory::~AbsentMemory() {
  const GpuDevice::Scope scope(*device_);
  for (const CudaAddress address : taken_) device_->calls().free(address);
  for (const auto& [key, memory] : neutral_) device_->calls().free_pinned(memory);
}

absl::StatusOr<std::byte*> AbsentMemory::Take(size_t bytes) {
  if (taken_.empty() || bytes > bytes_) {
    bytes_ = std::max({bytes, 2 * bytes_, size_t{1} << 16});
    CudaAddress address = 0;
    absl::Status made =
        device_->driver().Check(device_->calls().allocate(&address, bytes_), "cuMemAlloc");
    if (!made.ok()) return made;
    taken_.push_back(address);
  }
  return reinterpret_cast<std::byte*>(taken_.back());
}

absl::StatusOr<const std::byte*> AbsentMemory::NeutralPiece(const Signature& signature) {
  void*& memory = neutral_[{signature.dtype, signature.op}];
  if (memory == nullptr) {
    absl::Status made = device_->driver().Check(
        device_->calls().allocate_pinned(&memory, kPieceElements * ElementBytes(signature), 0),
        "cuMemHostAlloc");
    if (!made.ok()) return made;
    FillNeutral(signature, memory, kPieceElements);
  }
  return static_cast<const std::byte*>(memory);
}

absl::Status AbsentMemory::Fill(const Signature& signature, std::byte* memory, size_t elements) {
  const auto neutral = NeutralPiece(signature);
  if (!neutral.ok()) return neutral.status();
  const size_t width = ElementBytes(signature);
  for (size_t at = 0; at < elements; at += kPieceElements) {
    const size_t count = std::min(kPieceElements, elements - at);
    absl::Status copied = device_->driver().Check(
        device_->calls().copy_in(reinterpret_cast<CudaAddress>(memory + at * width), *neutral,
                                 count * width, device_->shared_stream()),
        "cuMemcpyHtoDAsync");
    if (!copied.ok()) return copied;
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
