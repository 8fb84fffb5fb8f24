// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device_memory.h"

#include "absl/strings/str_cat.h"

namespace hvd::rt {

absl::Status CheckOnDevice(const GpuDevice& device, const void* memory, const char* what) {
  const auto address = reinterpret_cast<CudaAddress>(memory);
  unsigned type = 0;
  int ordinal = -1;
  const CudaFunctions& calls = device.calls();
  const bool known =
      calls.pointer_attribute(&type, kCudaPointerMemoryType, address) == kCudaSuccess &&
      calls.pointer_attribute(&ordinal, kCudaPointerDevice, address) == kCudaSuccess;
  if (!known || type != kCudaMemoryDevice) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ".data is no memory of a GPU, but ", what, ".device_type is HVD_CUDA"));
  }
  if (ordinal == device.index()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ".data lies on GPU ", ordinal, ", ", what,
                                                 ".device_id is ", device.index()));
}

}  // namespace hvd::rt
