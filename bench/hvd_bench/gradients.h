// SPDX-License-Identifier: Apache-2.0
// A training step's gradients: 161 tensors of ResNet-50's shapes, submitted in an order that is
// random and another on each rank, against one contiguous call of the same size.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/hvd_bench/buffer.h"

namespace bench {

struct GradientsPlan {
  Dtype dtype;
  Memory memory = Memory::kUser;
  bool views = false;  // the gradients are views of one bucket
  int steps = 20;
};

struct GradientsResult {
  size_t bytes = 0, tensors = 0;
  std::vector<double> steps_us;       // ascending, the slowest rank's
  std::vector<double> contiguous_us;  // of the single calls between the steps
};

// Throws WrongValue.
GradientsResult MeasureGradients(const GradientsPlan& plan);

}  // namespace bench
