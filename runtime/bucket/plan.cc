// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/plan.h"

#include <string>

namespace hvd::rt {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kMostBytes = size_t{1} << 62;

}  // namespace

absl::StatusOr<BucketPlan> PlanBucket(absl::Span<const int64_t> counts, size_t element_bytes,
                                      size_t chunk_bytes) {
  BucketPlan plan;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto count = static_cast<size_t>(counts[i]);
    if (counts[i] < 0 || count > kMostBytes / element_bytes ||
        plan.bytes + count * element_bytes > kMostBytes) {
      return absl::InvalidArgumentError("a bucket's tensor " + std::to_string(i) + " cannot have " +
                                        std::to_string(counts[i]) + " elements");
    }
    const size_t bytes = (count * element_bytes + kLine - 1) / kLine * kLine;
    const size_t filled = plan.chunks.empty() ? 0 : plan.bytes - plan.chunks.back().offset;
    if (plan.chunks.empty() || (filled > 0 && filled + bytes > chunk_bytes)) {
      plan.chunks.push_back({plan.bytes, 0, i, 0});
    }
    plan.views.push_back({plan.bytes, count, plan.chunks.size() - 1});
    plan.chunks.back().elements += bytes / element_bytes;
    ++plan.chunks.back().tensors;
    plan.bytes += bytes;
  }
  return plan;
}

}  // namespace hvd::rt
