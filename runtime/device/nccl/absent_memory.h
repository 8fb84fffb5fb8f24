// SPDX-License-Identifier: Apache-2.0
// Device memory of a rank that has joined: what it brings to the others' calls, and where it drops
// what it gets.
//
// Threads: one at a time, in the device's Scope.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/request/request.h"
#include "runtime/gpu/gpu_device.h"

namespace hvd::rt {

class AbsentMemory {
 public:
  explicit AbsentMemory(std::shared_ptr<GpuDevice> device) : device_(std::move(device)) {}
  // Nothing that it has given is in use.
  ~AbsentMemory();
  AbsentMemory(const AbsentMemory&) = delete;
  AbsentMemory& operator=(const AbsentMemory&) = delete;

  // Returns so many bytes, which last until the next call: what is asked of `shared_stream` later
  // comes after.
  absl::StatusOr<std::byte*> Take(size_t bytes);
  // Fills what lies there with values that change nothing, in the order of `shared_stream`.
  absl::Status Fill(const Signature& signature, std::byte* memory, size_t elements);

 private:
  absl::StatusOr<const std::byte*> NeutralPiece(const Signature& signature);

  const std::shared_ptr<GpuDevice> device_;
  std::vector<CudaAddress> taken_;  // the last is the largest; the others may still be in use
  size_t bytes_ = 0;                // of that
  // Pinned, and never written again: by type and op.
  std::map<std::pair<uint32_t, uint32_t>, void*> neutral_;
};

}  // namespace hvd::rt
