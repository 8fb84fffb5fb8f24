// SPDX-License-Identifier: Apache-2.0
#include "proto/page/rank_metrics.h"

#include <catch2/catch.hpp>

#include <memory>
#include "base/json.h"

namespace hvd {
namespace {

TEST_CASE("counters are summed field by field") {
  const auto metrics = std::make_unique<RankMetrics>();
  metrics->calls[1] = 3;
  metrics->bytes[1] = 12;
  metrics->fusion_fill[kFusionFillBuckets - 1] = 5;
  RankTotals totals = {};
  totals.Add(*metrics);
  RankTotals more = {};
  more.calls[2] = 4;
  more.wait_ns = 7;
  totals.Add(more);
  CHECK(totals.all_calls() == 7);
  CHECK(totals.all_bytes() == 12);
  CHECK(RenderJson(MetricsJson(totals)) ==
        R"({"calls":{"allreduce":3,"allgather":4},"bytes":{"allreduce":12},"wait_ns":7,)"
        R"("fusion_fill_tenths":[0,0,0,0,0,0,0,0,0,5]})");
}

TEST_CASE("nothing counted is an empty object") {
  CHECK(RenderJson(MetricsJson(RankTotals{})) == "{}");
}

}  // namespace
}  // namespace hvd
