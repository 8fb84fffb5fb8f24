// SPDX-License-Identifier: Apache-2.0
// Collectives of tensors on GPUs: how long a call takes until its bytes are there, how long each of
// many takes that follow one another on a stream, and how long NCCL's own calls take there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/device/raw_nccl.h"
#include "bench/hvd_bench/collective.h"

namespace bench {

// Before the session: a gpu::Problem where there is no GPU.
void RequireGpu();
// As long as this lives, within the session: the GPU of this rank, by its place among the host's
// ranks. Ranks share GPUs where these are fewer.
class GpuOfRank {
 public:
  GpuOfRank();
  ~GpuOfRank() { gpu::Side::Close(); }
  GpuOfRank(const GpuOfRank&) = delete;
  GpuOfRank& operator=(const GpuOfRank&) = delete;
};

struct GpuTimes {
  std::vector<double> blocking_us;  // ascending, the slowest rank's: until the bytes are there
  double in_flight_us = 0;          // a call of many, with one wait for the GPU at their end
  std::optional<double> raw_us;     // the same of NCCL's own
  std::string refusal;              // why there is no such call of NCCL's
};

// `raw`: null without. Throws WrongValue, also when NCCL's results are wrong.
GpuTimes MeasureOnGpu(int iterations, const Plan& plan, Collective* collective, gpu::RawNccl* raw);

}  // namespace bench
