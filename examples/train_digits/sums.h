// SPDX-License-Identifier: Apache-2.0
// Gradients on their way to becoming sums over all ranks: in host memory, or on GPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/train_digits/gpu.h"

namespace digits {

// One thread. A session is open as long as it lives.
class Sums {
 public:
  virtual ~Sums() = default;
  // Sends `values` on their way, which are not to be touched until End. Each name once before it.
  virtual void Begin(const std::string& name, std::vector<float>* values) = 0;
  // All that was begun is summed: `values` hold the sums over all ranks.
  virtual void End() = 0;
};

std::unique_ptr<Sums> MakeHostSums();
// `gpu` is open, and outlives it.
std::unique_ptr<Sums> MakeGpuSums(Gpu* gpu);

}  // namespace digits
