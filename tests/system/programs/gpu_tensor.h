// SPDX-License-Identifier: Apache-2.0
// A tensor on GPU 0, and calls on it.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/device/gpu_memory.h"
#include "tests/system/programs/checks.h"

namespace gpu {

// float32 on GPU 0.
class Tensor {
 public:
  explicit Tensor(size_t count, size_t stream = 1)
      : shape_{static_cast<int64_t>(count)},
        stream_(Side::Get().stream(stream)),
        memory_(count * sizeof(float)) {
    value.data = memory_.data();
    value.shape = shape_;
    value.ndim = 1;
    value.device_type = HVD_CUDA;
    value.stream = stream_;
  }
  void Set(float number) {
    const std::vector<float> all(static_cast<size_t>(shape_[0]), number);
    gpu::Upload(all.data(), memory_.data(), memory_.bytes(), stream_);
  }
  std::vector<float> Get(hvd::rt::CudaStream stream) const {
    std::vector<float> all(static_cast<size_t>(shape_[0]));
    gpu::Download(all.data(), memory_.data(), memory_.bytes(), stream);
    return all;
  }
  void MustBe(float wanted, const std::string& what) const { MustBe(wanted, what, stream_); }
  void MustBe(float wanted, const std::string& what, hvd::rt::CudaStream stream) const {
    for (const float got : Get(stream)) {
      if (got != wanted) Fail(what + ": " + std::to_string(got));
    }
  }

  hvd_tensor_t value = HVD_TENSOR_INIT;

 private:
  int64_t shape_[1];
  hvd::rt::CudaStream stream_;
  gpu::Memory memory_;
};

inline hvd_options_t Sum(const char* name) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name;
  options.op = HVD_SUM;
  return options;
}

inline hvd_handle_t Submit(const Tensor& tensor, const hvd_options_t& options) {
  hvd_handle_t handle = 0;
  Must(hvd_allreduce_async(&tensor.value, &tensor.value, &options, &handle), "submit");
  return handle;
}

using Modes = std::map<std::string, std::function<void()>>;

// Does one of these in a job, as a whole program; returns its exit code.
inline int RunMode(const Modes& modes, const std::string& asked) try {
  const auto mode = modes.find(asked);
  if (mode == modes.end()) return 2;
  hvd::Session session;
  mode->second();
  Side::Close();
  std::printf("done\n");
  return 0;
} catch (const Problem& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}

}  // namespace gpu
