// SPDX-License-Identifier: Apache-2.0
// The GPUs of this process: found at the first use, opened at the first use of each. And the device
// memory that hvd has given.
//
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/gpu/cuda_driver.h"
#include "runtime/gpu/gpu_device.h"

namespace hvd::rt {

class Gpus {
 public:
  // `id` counts the GPUs that this process may see. Unimplemented: there is no driver, or no such
  // GPU; says why.
  absl::StatusOr<std::shared_ptr<GpuDevice>> Find(int id);
  // Lets go of all, but of those that have memory which hvd has given. They can be found anew.
  void Close();

  // Device memory, until Free. ResourceExhausted: there is none.
  absl::StatusOr<void*> Allocate(int id, size_t bytes);
  // InvalidArgument: Allocate has not given it, or it was freed. Waits for what is on the device.
  absl::Status Free(void* memory);
  // Returns what has gone wrong on the GPUs that are open.
  absl::Status Check() const;
  // -1: Allocate has not given it.
  int DeviceOf(const void* memory) const;

 private:
  absl::StatusOr<std::shared_ptr<GpuDevice>> FindLocked(int id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::optional<absl::StatusOr<CudaDriver>> driver_ ABSL_GUARDED_BY(mutex_);  // once looked for
  std::map<int, std::shared_ptr<GpuDevice>> open_ ABSL_GUARDED_BY(mutex_);
  std::map<const void*, int> given_ ABSL_GUARDED_BY(mutex_);  // where each lies
};

}  // namespace hvd::rt
