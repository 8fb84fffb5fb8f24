// SPDX-License-Identifier: Apache-2.0
#include "cli/front/dry_run.h"

#include <catch2/catch.hpp>

#include "cli/front/plan.h"
#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

absl::StatusOr<std::string> TableOf(const std::vector<std::string>& args,
                                    const FrontWorld& world = BoxWorld()) {
  const auto typed = ParseOptions(args);
  REQUIRE(typed.ok());
  const auto run = PlanRun(*typed, world);
  REQUIRE(run.ok());
  return FormatPlan(*run, world);
}

std::string Table(const std::vector<std::string>& args, const FrontWorld& world = BoxWorld()) {
  return *TableOf(args, world);
}

TEST_CASE("the plan is a table of ranks; what is not known of other hosts is a dash") {
  CHECK(Table({"-np", "3", "-H", "localhost:2,other:4", "./train", "two words", "it's"}) ==
        "3 ranks on 2 hosts (-H: 2 hosts, 6 slots)\n"
        "host localhost: 1 GPU for 2 slots: ranks share it (--gpus-per-rank 1 makes that an "
        "error, 0 leaves CUDA_VISIBLE_DEVICES as it is)\n"
        "rank  host       slot  local_rank  cores  GPU\n"
        "   0  localhost     0           0  0-1    GPU-aaaaaaaa NVIDIA A (shared)\n"
        "   1  localhost     1           1  2-3    GPU-aaaaaaaa NVIDIA A (shared)\n"
        "   2  other         0           0  -      -\n"
        "command: ./train 'two words' 'it'\\''s'\n");
}

TEST_CASE("a plan tells the bounds of an elastic job, and where its hosts come from") {
  CHECK(Table({"-np", "1", "--min-np", "1", "--gpus-per-rank", "0"}) ==
        "1 rank on 1 host (localhost: 1 host, 1 slot)\n"
        "members come and go: 1 rank at least, as many as there are slots at most; the hosts stay "
        "these\n"
        "rank  host       slot  local_rank  cores  GPU\n"
        "   0  localhost     0           0  0-3    -\n");
  CHECK(Table({"--min-np", "2", "--max-np", "8", "--host-discovery-script", "./h\n", "a"}) ==
        "2 ranks on hosts that are not known yet (--host-discovery-script)\n"
        "members come and go: 2 ranks at least, 8 at most; each 1s the hosts are those in the "
        "output of ./h\\n\n"
        "command: a\n");
}

TEST_CASE("a plan needs no command") {
  CHECK(Table({"-np", "1"}) ==
        "1 rank on 1 host (localhost: 1 host, 1 slot)\n"
        "rank  host       slot  local_rank  cores  GPU\n"
        "   0  localhost     0           0  0-3    GPU-aaaaaaaa NVIDIA A\n");
}

TEST_CASE("ranks that are not bound have no cores of their own") {
  CHECK(Table({"-np", "1", "--bind", "none", "--gpus-per-rank", "0"}) ==
        "1 rank on 1 host (localhost: 1 host, 1 slot)\n"
        "rank  host       slot  local_rank  cores  GPU\n"
        "   0  localhost     0           0  -      -\n");
}

TEST_CASE("a plan follows an inherited mask and near cores") {
  FrontWorld world = BoxWorld();
  world.environment.push_back("CUDA_VISIBLE_DEVICES=2,1");
  world.find_cards = [] {
    return CardSearch{
        {{"01", {"GPU-a", "A"}}, {"02", {"GPU-b", "B", {0, 1}}}, {"03", {"GPU-c", "C", {2, 3}}}},
        ""};
  };
  CHECK(Table({"-np", "2", "--gpus-per-rank", "1"}, world) ==
        "2 ranks on 1 host (localhost: 1 host, 2 slots)\n"
        "rank  host       slot  local_rank  cores  GPU\n"
        "   0  localhost     0           0  2-3    GPU-c C\n"
        "   1  localhost     1           1  0-1    GPU-b B\n");
}

TEST_CASE("a plan that this host has too few GPUs for is refused") {
  CHECK(TableOf({"-np", "2", "--gpus-per-rank", "1"}).status().message() ==
        "host localhost: --gpus-per-rank 1 needs 2 GPUs for 2 slots, and this host has 1 GPU; "
        "give this host at most 1 slot");
  CHECK(Decide({"-np", "2", "--gpus-per-rank", "1", "--dry-run"}).exit_code == 2);
}

}  // namespace
}  // namespace hvd::cli
