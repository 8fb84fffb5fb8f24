// SPDX-License-Identifier: Apache-2.0
// Which tensors of a bucket are ready in this step, and what their chunks still miss. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/bucket/plan.h"

namespace hvd::rt {

class ReadyTensors {
 public:
  // `plan` outlives it.
  explicit ReadyTensors(const BucketPlan& plan) : plan_(plan) { Clear(); }

  // A new step: none is ready.
  void Clear();
  size_t size() const { return ready_.size(); }
  bool Has(size_t tensor) const { return ready_[tensor]; }
  bool empty() const;
  // REQUIRES: it is not ready.
  void Add(size_t tensor);
  // With this tensor all of its chunk are ready.
  bool IsLastOfChunk(size_t tensor) const { return missing_[plan_.views[tensor].chunk] == 1; }
  // Names those from `begin` to `end` - 1 that are not ready: "1, 4"; empty: all are.
  std::string Missing(size_t begin, size_t end) const;

 private:
  const BucketPlan& plan_;
  std::vector<bool> ready_;      // by tensor
  std::vector<size_t> missing_;  // by chunk: how many are not ready
};

}  // namespace hvd::rt
