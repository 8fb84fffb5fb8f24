// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/plan.h"

#include <catch2/catch.hpp>
#include <climits>

namespace hvd::rt {
namespace {

TEST_CASE("tensors lie on cache lines, one after the other") {
  const auto plan = PlanBucket({1, 16, 17, 0, 5}, 4, 1 << 20);
  REQUIRE(plan.ok());
  std::vector<size_t> offsets;
  for (const BucketView& view : plan->views) offsets.push_back(view.offset);
  CHECK(offsets == std::vector<size_t>{0, 64, 128, 256, 256});
  CHECK(plan->bytes == 320);
  REQUIRE(plan->chunks.size() == 1);
  CHECK(plan->chunks[0].elements == 80);
  CHECK(plan->chunks[0].tensors == 5);
}

TEST_CASE("chunks hold whole tensors up to their size; a larger one is alone") {
  const auto plan = PlanBucket({32, 32, 32, 1000, 0, 16, 16}, 4, 256);
  REQUIRE(plan.ok());
  std::vector<size_t> chunks, elements;
  for (const BucketView& view : plan->views) chunks.push_back(view.chunk);
  for (const BucketChunk& chunk : plan->chunks) elements.push_back(chunk.elements);
  CHECK(chunks == std::vector<size_t>{0, 0, 1, 2, 3, 3, 3});
  CHECK(elements == std::vector<size_t>{64, 32, 1008, 32});
}

// Every byte of the bucket belongs to one chunk, whatever the sizes.
TEST_CASE("chunks cover the bucket without a gap") {
  for (const size_t element : {1, 2, 4, 8}) {
    for (const size_t chunk_bytes : {1, 64, 1000, 100000}) {
      std::vector<int64_t> counts;
      for (int i = 0; i < 200; ++i) counts.push_back(i * i % 977);
      const auto plan = PlanBucket(counts, element, chunk_bytes);
      REQUIRE(plan.ok());
      std::vector<size_t> filled(plan->chunks.size());  // tensors with elements, by chunk
      for (const BucketView& view : plan->views) filled[view.chunk] += view.count > 0;
      size_t at = 0, tensors = 0;
      for (size_t i = 0; i < plan->chunks.size(); ++i) {
        const BucketChunk& chunk = plan->chunks[i];
        REQUIRE(chunk.offset == at);
        at += chunk.elements * element;
        tensors += chunk.tensors;
        REQUIRE((filled[i] <= 1 || chunk.elements * element <= chunk_bytes));
      }
      CHECK(at == plan->bytes);
      CHECK(tensors == counts.size());
    }
  }
}

TEST_CASE("a bucket of nothing is one; a tensor that cannot be is named") {
  REQUIRE(PlanBucket({}, 4, 100).ok());
  CHECK(PlanBucket({}, 4, 100)->chunks.empty());
  CHECK(std::string(PlanBucket({1, -2}, 4, 100).status().message()).find("tensor 1 ") !=
        std::string::npos);
  CHECK_FALSE(PlanBucket({LLONG_MAX}, 8, 100).ok());
  CHECK_FALSE(PlanBucket({LLONG_MAX / 4, LLONG_MAX / 4, LLONG_MAX / 4}, 1, 100).ok());
}

}  // namespace
}  // namespace hvd::rt
