#include "cli/front/dry_run.h"

#include <catch2/catch.hpp>

#include "cli/front/plan.h"
#include "tests/cli/front/front_worlds.h"

namespace hvd {
namespace {

std::string Table(const std::vector<std::string>& args) {
  const auto typed = ParseOptions(args);
  REQUIRE(typed.ok());
  const auto run = PlanRun(*typed, BoxWorld());
  REQUIRE(run.ok());
  return FormatPlan(*run, BoxWorld());
}

TEST_CASE("the plan is a table of ranks; what is not known of other hosts is a dash") {
  CHECK(Table({"-np", "3", "-H", "localhost:2,other:4", "./train", "two words", "it's"}) ==
        "3 ranks on 2 hosts (-H: 2 hosts, 6 slots)\n"
        "rank  host       local_rank  cores  GPU\n"
        "   0  localhost           0  0-1    GPU-a\n"
        "   1  localhost           1  2-3    -\n"
        "   2  other               0  -      -\n"
        "command: ./train 'two words' 'it'\\''s'\n");
}

TEST_CASE("a plan needs no command") {
  CHECK(Table({"-np", "1"}) ==
        "1 rank on 1 host (localhost: 1 host, 1 slot)\n"
        "rank  host       local_rank  cores  GPU\n"
        "   0  localhost           0  0-3    GPU-a\n");
}

TEST_CASE("ranks that are not bound have no cores of their own") {
  CHECK(Table({"-np", "1", "--bind", "none"}) ==
        "1 rank on 1 host (localhost: 1 host, 1 slot)\n"
        "rank  host       local_rank  cores  GPU\n"
        "   0  localhost           0  -      GPU-a\n");
}

}  // namespace
}  // namespace hvd
