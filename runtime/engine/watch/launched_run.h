// SPDX-License-Identifier: Apache-2.0
// The facts that are told of a run that a device has to finish. They are kept from the launch to
// the end: the requests are done before, and gone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/request/request.h"

namespace hvd::rt {

struct LaunchedTensor {
  uint64_t sequence = 0;  // of this rank's submissions in its set
  uint32_t number = 0;    // as the timeline counts names
  std::string name;
  uint64_t bytes = 0;
  int64_t submitted_ns = 0;  // 0: the timeline was off
};

struct LaunchedRun {
  std::string what;  // "allreduce 'grad.3' and 4 more"
  RequestKind kind = RequestKind::kBarrier;
  std::vector<LaunchedTensor> tensors;  // this rank's; none: it has joined
  int64_t batch_ns = 0;                 // when its batch came
  int64_t begin_ns = 0;                 // when it was launched
  uint64_t threshold = 0;               // of fusion, in bytes
};

}  // namespace hvd::rt
