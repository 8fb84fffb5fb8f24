// SPDX-License-Identifier: Apache-2.0
// Whether a call's tensors lie where they are said to.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/gpu/gpu_device.h"

namespace hvd::rt {

// `what` names the tensor: "input". InvalidArgument: `memory` is none of the device's.
absl::Status CheckOnDevice(const GpuDevice& device, const void* memory, const char* what);

}  // namespace hvd::rt
