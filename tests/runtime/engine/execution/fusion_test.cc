// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/fusion.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

using Plan = std::vector<std::vector<size_t>>;

LogEntry Sum(int64_t elements, hvd_dtype_t dtype = HVD_FLOAT32) {
  LogEntry entry;
  entry.signature.kind = RequestKind::kAllreduce;
  entry.signature.dtype = dtype;
  entry.signature.op = HVD_SUM;
  entry.signature.ndim = 1;
  entry.signature.shape[0] = elements;
  return entry;
}

TEST_CASE("equal sums run together up to the threshold") {
  CHECK(PlanFusion({Sum(10), Sum(20), Sum(30)}, {1 << 20}) == Plan{{0, 1, 2}});
  CHECK(PlanFusion({Sum(10), Sum(10), Sum(10)}, {80}) == Plan{{0, 1}, {2}});
  CHECK(PlanFusion({Sum(10), Sum(10), Sum(10), Sum(10)}, {80}) == Plan{{0, 1}, {2, 3}});
}

TEST_CASE("a threshold of nothing fuses nothing") {
  CHECK(PlanFusion({Sum(10), Sum(0), Sum(30)}, {0}) == Plan{{0}, {1}, {2}});
}

TEST_CASE("a tensor of the threshold's size runs alone and does not end a run") {
  CHECK(PlanFusion({Sum(10), Sum(100), Sum(10)}, {400}) == Plan{{0, 2}, {1}});
}

TEST_CASE("types alternate in two runs") {
  CHECK(PlanFusion({Sum(1), Sum(1, HVD_FLOAT16), Sum(1), Sum(1, HVD_FLOAT16)}, {1000}) ==
        Plan{{0, 2}, {1, 3}});
}

TEST_CASE("what differs runs apart") {
  LogEntry other = Sum(1);
  SECTION("operations") { other.signature.op = HVD_MAX; }
  SECTION("scales before") { other.signature.prescale = 0.5; }
  SECTION("scales after") { other.signature.postscale = 0.5; }
  SECTION("compression") { other.signature.compression = HVD_COMPRESSION_FP16; }
  SECTION("Adasum") { other.signature.op = HVD_ADASUM; }
  SECTION("contributors") { other.contributors = 3; }
  SECTION("shared memory") { other.host_buffers.resize(2); }
  CHECK(PlanFusion({Sum(1), other, Sum(1)}, {1000}) == Plan{{0, 2}, {1}});
}

TEST_CASE("with several hosts the plan does not depend on what one of them has in shared memory") {
  LogEntry shared = Sum(1);
  shared.host_buffers.resize(2);
  CHECK(PlanFusion({Sum(1), shared, Sum(1)}, {1000, false, true}) == Plan{{0, 1, 2}});
}

TEST_CASE("other operations and errors run by themselves, in their place") {
  LogEntry gather = Sum(4);
  gather.signature.kind = RequestKind::kAllgather;
  LogEntry wrong = Sum(4);
  wrong.error = "mismatch";
  CHECK(PlanFusion({Sum(1), gather, wrong, Sum(1)}, {1000}) == Plan{{0, 3}, {1}, {2}});
}

TEST_CASE("groups fuse with others unless they are to be alone") {
  LogEntry group = Sum(4);
  group.signature.group_count = 1;
  CHECK(PlanFusion({Sum(1), group, Sum(1)}, {1000, false}) == Plan{{0, 1, 2}});
  CHECK(PlanFusion({Sum(1), group, Sum(1)}, {1000, true}) == Plan{{0, 2}, {1}});
}

}  // namespace
}  // namespace hvd::rt
