// SPDX-License-Identifier: Apache-2.0
// The kernels of hvd's ops, on the CPU: for the threads of TensorFlow, which none of them holds up.
#pragma once

#include "python/operators/tensorflow/tf_api.h"

namespace hvd::tf {

// Registers kernels of the ops of that name, which are registered themselves.
void RegisterCollectiveKernels(Status* status);
void RegisterPlaceKernel(Status* status);
// Kernels for XLA's compiler that refuse in words what its own error would not say.
void RegisterRefusals(Status* status);

inline constexpr const char* kCollectiveOps[] = {"HvdAllreduce", "HvdAllgather", "HvdReducescatter",
                                                 "HvdBroadcast", "HvdAlltoall"};
inline constexpr char kPlaceOp[] = "HvdPlace";

}  // namespace hvd::tf
