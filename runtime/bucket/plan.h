// SPDX-License-Identifier: Apache-2.0
// How the tensors of a bucket lie in one piece of memory, and which of them travel together. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hvd::rt {

struct BucketView {
  size_t offset = 0;  // bytes; on a cache line
  size_t count = 0;   // elements
  size_t chunk = 0;
};

// Tensors that follow one another, with what lies between them.
struct BucketChunk {
  size_t offset = 0;              // bytes
  size_t elements = 0;            // up to the next chunk's beginning
  size_t first = 0, tensors = 0;  // which
};

struct BucketPlan {
  std::vector<BucketView> views;
  std::vector<BucketChunk> chunks;
  size_t bytes = 0;
};

// Whole tensors up to `chunk_bytes` make a chunk; a larger one is a chunk by itself.
// InvalidArgument for a negative count or more bytes than memory can have.
absl::StatusOr<BucketPlan> PlanBucket(absl::Span<const int64_t> counts, size_t element_bytes,
                                      size_t chunk_bytes);

}  // namespace hvd::rt
