// SPDX-License-Identifier: Apache-2.0
// torch's CUDA streams. torch's functions for them lie in libtorch_cuda, which a torch without CUDA
// has not: that library is looked for at the first use, in the process, where a tensor on a GPU has
// brought it.
#pragma once

#include <cstdint>

namespace hvd {

// The calling thread's, a cudaStream_t. Throws where this torch says none.
void* CurrentStream(int32_t device);

// As long as it lives, the calling thread's current stream is this one.
class StreamGuard {
 public:
  StreamGuard(void* stream, int32_t device);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  struct CUDAStreamGuardOpaque* guard_ = nullptr;  // torch's
};

}  // namespace hvd
