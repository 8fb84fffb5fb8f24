// SPDX-License-Identifier: Apache-2.0
// Floats as a tensor of one dimension, and as a state's.
#pragma once

#include <cstdint>
#include <vector>

#include "hvd/hvd.h"

namespace hvd::rt {

struct Floats {
  explicit Floats(std::vector<float>* values) : count(static_cast<int64_t>(values->size())) {
    tensor.data = values->data();
    tensor.shape = &count;
    tensor.ndim = 1;
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  const int64_t count;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
};

inline hvd_status_t AddFloats(hvd_state_t* state, const char* name, std::vector<float>* values,
                              int32_t kind) {
  const Floats floats(values);
  return hvd_state_add(state, name, &floats.tensor, kind);
}

}  // namespace hvd::rt
