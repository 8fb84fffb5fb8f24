// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/ready_tensors.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

// Twelve tensors of a line each: four chunks of three.
BucketPlan Plan() {
  const std::vector<int64_t> counts(12, 16);
  return *PlanBucket(counts, 4, 192);
}

TEST_CASE("a chunk is complete with its last tensor, in whatever order they come") {
  const BucketPlan plan = Plan();
  REQUIRE(plan.chunks.size() == 4);
  ReadyTensors ready(plan);
  CHECK(ready.empty());
  for (const size_t tensor : {4, 3}) {
    CHECK_FALSE(ready.IsLastOfChunk(tensor));
    ready.Add(tensor);
  }
  CHECK(ready.IsLastOfChunk(5));
  CHECK_FALSE(ready.IsLastOfChunk(0));
  CHECK(ready.Has(4));
  CHECK_FALSE(ready.Has(5));
  CHECK_FALSE(ready.empty());
}

TEST_CASE("a new step begins with none") {
  const BucketPlan plan = Plan();
  ReadyTensors ready(plan);
  for (size_t i = 0; i < ready.size(); ++i) ready.Add(i);
  CHECK(ready.Missing(0, 12) == "");
  ready.Clear();
  CHECK(ready.empty());
  CHECK_FALSE(ready.IsLastOfChunk(0));
}

TEST_CASE("those that are missing are named, eight at most") {
  const BucketPlan plan = Plan();
  ReadyTensors ready(plan);
  CHECK(ready.Missing(0, 12) == "0, 1, 2, 3, 4, 5, 6, 7 and 4 more");
  ready.Add(1);
  CHECK(ready.Missing(0, 3) == "0, 2");
  CHECK(ready.Missing(1, 2) == "");
}

}  // namespace
}  // namespace hvd::rt
