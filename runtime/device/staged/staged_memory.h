// SPDX-License-Identifier: Apache-2.0
// The host memory of one call: for the bytes of its tensors, and for results whose size was not
// known before.
//
// Threads: the submitter or hvd-gpu; the engine's executor asks for results.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "runtime/device/staged/staging.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

class StagedMemory {
 public:
  // `staging` outlives it.
  StagedMemory(Staging* staging, std::shared_ptr<GpuDevice> device)
      : staging_(*staging), device_(std::move(device)) {}
  StagedMemory(const StagedMemory&) = delete;
  StagedMemory& operator=(const StagedMemory&) = delete;

  // So many bytes for the tensors, unless they were taken already. ResourceExhausted.
  absl::Status Take(size_t bytes);
  // Null before Take.
  std::byte* tensors() const { return tensors_.memory; }
  // Gives memory for results to the engine, which asks while other ranks wait.
  ResultSource source() { return {&GiveResult, this}; }
  // Returns the memory that was given for the tensor at this position of the call.
  std::byte* ResultAt(int32_t position);
  // Gives all of it back: neither the engine nor the device uses it any more.
  void GiveBack();

 private:
  static void* GiveResult(void* memory, const int64_t* shape, int32_t ndim, int32_t dtype,
                          int32_t position);
  void* TakeResult(int32_t position, size_t bytes);

  Staging& staging_;
  const std::shared_ptr<GpuDevice> device_;
  Staging::Piece tensors_;
  bool taken_ = false;
  Mutex mutex_;
  std::map<int32_t, Staging::Piece> results_ ABSL_GUARDED_BY(mutex_);  // by position
};

}  // namespace hvd::rt
