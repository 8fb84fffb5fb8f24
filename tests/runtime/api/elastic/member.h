// SPDX-License-Identifier: Apache-2.0
// What members of an elastic job do in these tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "tests/runtime/api/elastic/floats.h"
#include "tests/support/elastic_daemon.h"

namespace hvd::rt {

// A state of one large tensor and a small one, and the bytes "step".
struct MemberState {
  MemberState() : weights(50000), bias(3) {
    MUST(hvd_state_create(&state) == HVD_OK);
    Add("weights", &weights);
    Add("bias", &bias);
  }
  void Add(const char* name, std::vector<float>* values, int32_t kind = HVD_STATE_REPLICATED) {
    MUST(AddFloats(state, name, values, kind) == HVD_OK);
  }
  // All that is replicated has this value.
  void Set(float value) {
    weights.assign(weights.size(), value);
    bias.assign(bias.size(), value + 0.5F);
    const std::string step = std::to_string(static_cast<int>(value));
    MUST(hvd_state_put(state, "step", step.data(), step.size()) == HVD_OK);
  }
  void MustBe(float value) const {
    MUST(weights == std::vector<float>(weights.size(), value));
    MUST(bias == std::vector<float>(bias.size(), value + 0.5F));
    const void* data = nullptr;
    size_t bytes = 0;
    MUST(hvd_state_get(state, "step", &data, &bytes) == HVD_OK);
    MUST(std::string(static_cast<const char*>(data), bytes) ==
         std::to_string(static_cast<int>(value)));
  }
  void MustCommit(uint64_t expected) {
    uint64_t number = 0;
    MUST(hvd_state_commit(state, &number) == HVD_OK);
    MUST(number == expected);
  }

  hvd_state_t* state = nullptr;
  std::vector<float> weights, bias;
};

inline hvd_epoch_t CurrentEpoch() {
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  MUST(hvd_epoch(&epoch) == HVD_OK);
  return epoch;
}

inline hvd_status_t SumOf(float value, const char* name) {
  const int64_t one = 1;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = &value;
  tensor.shape = &one;
  tensor.ndim = 1;
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name;
  options.op = HVD_SUM;
  const hvd_status_t status = hvd_allreduce(&tensor, &tensor, &options);
  if (status == HVD_OK) MUST(value == static_cast<float>(hvd_size()));
  return status;
}

}  // namespace hvd::rt
