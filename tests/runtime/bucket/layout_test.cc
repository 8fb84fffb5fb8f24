// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/layout.h"

#include <catch2/catch.hpp>

#include "hvd/hvd.h"

namespace hvd::rt {
namespace {

struct Bucket {
  std::vector<int64_t> counts;
  size_t chunk_bytes = 1 << 20;
  int32_t dtype = HVD_FLOAT32;
};

LayoutComparison Compare(const std::vector<Bucket>& by_rank) {
  std::vector<int64_t> rows;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const Bucket& bucket = by_rank[rank];
    const auto plan = PlanBucket(bucket.counts, 4, bucket.chunk_bytes);
    REQUIRE(plan.ok());
    const std::vector<int64_t> row = LayoutRow(static_cast<int>(rank), bucket.dtype, *plan);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return CompareLayouts(rows);
}

TEST_CASE("equal buckets have no difference") {
  const LayoutComparison same = Compare({{{100, 200}}, {{100, 200}}, {{100, 200}}});
  CHECK(same.difference.empty());
  CHECK(same.ranks == 3);
  CHECK(same.most_chunks == 1);
  CHECK(Compare({{{}}, {{}}}).difference.empty());
  CHECK(CompareLayouts({}).ranks == 0);
}

TEST_CASE("the first difference is named with its ranks") {
  CHECK(Compare({{{5, 100, 200}}, {{5, 100, 200}}, {{5, 200, 100}}}).difference ==
        "tensor 1: rank 0 has 100 elements, rank 2 has 200");
  CHECK(Compare({{{10}}, {{11}}}).difference == "tensor 0: rank 0 has 10 elements, rank 1 has 11");
  CHECK(Compare({{{10, 10}}, {{10}}}).difference == "rank 0 has 2 tensors, rank 1 has 1");
  CHECK(Compare({{{10}, 64, HVD_INT32}, {{10}, 64}}).difference ==
        "rank 0 has int32, rank 1 has float32");
}

TEST_CASE("tensors that travel together must be the same everywhere") {
  const LayoutComparison few = Compare({{{16, 16, 16, 16}, 64}, {{16, 16, 16, 16}, 128}});
  CHECK(few.difference == "rank 0 has 4 chunks, rank 1 has 2 (chunk_bytes, HVD_BUCKET_BYTES)");
  CHECK(few.most_chunks == 4);
  // A chunk size that makes no other chunks is no difference.
  CHECK(Compare({{{16, 16}, 1000}, {{16, 16}, 2000}}).difference.empty());
}

}  // namespace
}  // namespace hvd::rt
