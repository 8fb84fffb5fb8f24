// SPDX-License-Identifier: Apache-2.0
#include "python/operators/gpu.h"

#include <dlfcn.h>
#include <torch/csrc/stable/tensor.h>

#include <stdexcept>
#include <string>

namespace hvd {
namespace {

using Guard = struct CUDAStreamGuardOpaque*;

// Python has loaded it, if there is one, and keeps its names to itself: it has to be asked.
void* TorchCuda() {
  static void* const library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? RTLD_DEFAULT : library;
}

template <typename Function>
Function* Find(const char* name) {
  if (void* found = dlsym(TorchCuda(), name)) return reinterpret_cast<Function*>(found);
  throw std::runtime_error(std::string("HVD_ERR_UNSUPPORTED: this torch has no ") + name +
                           ", so the operators cannot tell a GPU's streams. Call hvd.torch's "
                           "functions uncompiled, or use a torch with CUDA from 2.10 on");
}

void Check(AOTITorchError code, const char* what) {
  if (code == AOTI_TORCH_SUCCESS) return;
  throw std::runtime_error(std::string("HVD_ERR_INTERNAL: torch could not ") + what);
}

}  // namespace

void* CurrentStream(int32_t device) {
  static auto* const ask =
      Find<AOTITorchError(int32_t, void**)>("aoti_torch_get_current_cuda_stream");
  void* stream = nullptr;
  Check(ask(device, &stream), "say the current CUDA stream");
  return stream;
}

StreamGuard::StreamGuard(void* stream, int32_t device) {
  static auto* const begin =
      Find<AOTITorchError(void*, int32_t, Guard*)>("aoti_torch_create_cuda_stream_guard");
  Check(begin(stream, device, &guard_), "change the current CUDA stream");
}

StreamGuard::~StreamGuard() {
  // torch has both or neither; so it is found.
  static auto* const end = Find<AOTITorchError(Guard)>("aoti_torch_delete_cuda_stream_guard");
  end(guard_);
}

}  // namespace hvd
