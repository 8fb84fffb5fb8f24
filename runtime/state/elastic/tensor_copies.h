// SPDX-License-Identifier: Apache-2.0
// The bytes of a caller's tensor, on the CPU or on a GPU, from and into the host's memory.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "hvd/hvd.h"
#include "runtime/device/gpus.h"

namespace hvd::rt {

// A part of the tensor's bytes.
struct TensorPart {
  size_t from = 0, bytes = 0;
};

// Copies them, with the process's GPUs. Threads: any.
class TensorCopies {
 public:
  // `gpus` outlives it.
  explicit TensorCopies(Gpus* gpus) : gpus_(*gpus) {}

  // On a GPU: behind what is on the tensor's stream; returns when the bytes are there.
  // Unimplemented: no such GPU, or the stream is being captured into a graph.
  absl::Status CopyOut(const hvd_tensor_t& tensor, const TensorPart& part, void* to) const;
  absl::Status CopyIn(const hvd_tensor_t& tensor, const TensorPart& part, const void* from) const;

 private:
  // `ask` asks for the copy on the tensor's stream.
  absl::Status OnGpu(const hvd_tensor_t& tensor,
                     absl::FunctionRef<CudaResult(const GpuDevice&, CudaStream)> ask) const;

  Gpus& gpus_;
};

}  // namespace hvd::rt
