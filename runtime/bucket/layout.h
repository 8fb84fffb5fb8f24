// SPDX-License-Identifier: Apache-2.0
// Do all ranks' buckets have the same layout, and if not, what differs. Each tells the others about
// its own in a row of numbers. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/bucket/plan.h"

namespace hvd::rt {

std::vector<int64_t> LayoutRow(int rank, int32_t dtype, const BucketPlan& plan);

struct LayoutComparison {
  int ranks = 0;           // whose rows were there
  size_t most_chunks = 0;  // of any rank
  std::string difference;  // "tensor 1: rank 0 has 200 elements, rank 1 has 100"; empty: none
};
// `rows` are the ranks', one after the other: the first differing rank is named beside the first.
LayoutComparison CompareLayouts(absl::Span<const int64_t> rows);

}  // namespace hvd::rt
