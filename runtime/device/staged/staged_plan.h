// SPDX-License-Identifier: Apache-2.0
// How a call on tensors of a device goes by way of the host: which bytes are copied to host memory,
// what the engine is asked for there, and which bytes are copied back. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

// A tensor of the call, and where its bytes lie in the call's host memory. `at` is from its
// beginning.
struct StagedTensor {
  const void* input = nullptr;  // on the device
  size_t input_at = 0;
  size_t input_bytes = 0;  // 0: this rank brings none
  void* output =
      nullptr;  // on the device; null: the result's size is known later, or there is none
  size_t output_at = 0;
  size_t output_bytes = 0;
};

struct StagedPlan {
  size_t bytes = 0;                                // of the call's host memory
  std::vector<std::vector<StagedTensor>> tensors;  // by request of the call, then by part
};

// `requests`: of one call, as they were checked. `index`: this rank's in the set of `size` members.
struct StagedPlace {
  int index = 0;
  int size = 1;
};
StagedPlan PlanStaging(absl::Span<const std::unique_ptr<Request>> requests,
                       const StagedPlace& place);

// One copy between the device and the host.
struct StagedCopy {
  void* device = nullptr;
  size_t at = 0;
  size_t bytes = 0;
};

// A request to the engine.
struct StagedRequest {
  Request request;
  size_t of = 0;                 // which request of the call
  std::vector<StagedCopy> in;    // before it
  std::vector<StagedCopy> back;  // after it, where the outputs are known
};

// Tensors above twice this travel in pieces, so that copies and collectives overlap. The same on
// all ranks.
inline constexpr size_t kStagedPieceBytes = size_t{4} << 20;

// Where the call's request `of` lies, and what the ranks call it among themselves.
struct StagedWhere {
  size_t of = 0;
  std::byte* memory = nullptr;
  std::string_view agreed_name;
};
// Makes the engine's requests for one request of the call: all ranks make the same ones.
// `result_source` gives host memory for results of a size that is known later.
std::vector<std::unique_ptr<StagedRequest>> MakeStagedRequests(
    const Request& asked, absl::Span<const StagedTensor> tensors, const StagedWhere& where,
    const ResultSource& result_source);

}  // namespace hvd::rt
