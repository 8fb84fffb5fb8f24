// SPDX-License-Identifier: Apache-2.0
#include "cli/report/job_summary.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

JobFacts Facts(std::vector<double> waits_s) {
  JobFacts facts = FactsOf(Topology({{"alpha", static_cast<int>(waits_s.size())}}));
  for (size_t rank = 0; rank < waits_s.size(); ++rank) {
    v1::RankCounts& counts = *facts.ranks[rank].exit.mutable_counts();
    counts.set_calls(10);
    counts.set_bytes(2'500'000);
    counts.set_wait_ns(static_cast<uint64_t>(waits_s[rank] * 1e9));
  }
  return facts;
}

TEST_CASE("the rank that waits least is the one that the others wait for") {
  const JobFacts facts = Facts({2.0, 0.5, 3.0});
  const auto slowest = FindSlowest(facts);
  REQUIRE(slowest.has_value());
  CHECK(slowest->rank == 1);
  CHECK(slowest->others_s == Approx(2.5));
  CHECK(RenderSummary(facts) ==
        "10 collectives and 2.5 MB a rank, 1.83 s waiting for others on average\n"
        "  slowest: rank 1 on alpha; the others waited 2.5 s on average, it waited 0.5 s");
  CHECK(RenderJson(SummaryJson(facts)) ==
        R"({"collectives":30,"bytes":7500000,"wait_s":5.5,)"
        R"("slowest":{"rank":1,"waited_s":0.5,"others_s":2.5},"lag_s":[1.0,2.5,0.0]})");
}

TEST_CASE("differences by chance name nobody") {
  CHECK_FALSE(FindSlowest(Facts({1.0, 1.1})).has_value());
  CHECK_FALSE(FindSlowest(Facts({0.001, 0.004})).has_value());
  CHECK_FALSE(FindSlowest(Facts({5.0})).has_value());
}

TEST_CASE("a job without collectives has no summary") {
  const JobFacts facts = FactsOf(Topology({{"alpha", 1}}));
  CHECK(RenderSummary(facts).empty());
}

}  // namespace
}  // namespace hvd::cli
