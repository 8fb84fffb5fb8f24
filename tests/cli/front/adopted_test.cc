// SPDX-License-Identifier: Apache-2.0
#include "cli/front/adopted.h"

#include <catch2/catch.hpp>

#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

FrontWorld Adopting(const std::string& options = "", int port = 4711) {
  FrontWorld world = BoxWorld();
  Adoption adoption;
  adoption.by = "mpirun";
  adoption.key = "feed";
  adoption.hosts = {{"one", 2, 0, "", {}}, {"two", 1, port, "cafe", {"10.0.0.2"}}};
  world.environment.push_back("HVD_ADOPTION=" + FormatAdoption(adoption));
  world.environment.push_back("OMPI_COMM_WORLD_SIZE=3");
  world.environment.push_back("OMPI_COMM_WORLD_RANK=0");
  if (!options.empty()) world.environment.push_back("HVD_RUN_OPTIONS=" + options);
  return world;
}

TEST_CASE("ranks of another launcher's are taken as they are") {
  const FrontOutcome outcome = Decide({"--", "python", "train.py"}, Adopting());
  INFO(outcome.err);
  REQUIRE(outcome.exit_code < 0);
  const RunOptions& run = outcome.options;
  CHECK(run.np == 3);
  CHECK(run.topology.hosts() == std::vector<HostShape>{{"one", 2}, {"two", 1}});
  CHECK(run.is_local == std::vector<bool>{true, false});
  CHECK(run.command == std::vector<std::string>{"python", "train.py"});
  CHECK_FALSE(run.binds_cores);
  CHECK(run.gpus_per_rank == 0);
  CHECK(run.stdin_rank == -1);
  CHECK(run.rsh_agent.empty());
  for (const std::string& entry : run.environment) CHECK_THAT(entry, !Contains("HVD_ADOPTION"));
}

TEST_CASE("where no daemon waits, srun starts it") {
  CHECK(Decide({"--", "train"}, Adopting("", 0)).options.rsh_agent == "srun");
}

TEST_CASE("options come by a variable, and those that the launcher has decided are refused") {
  const FrontOutcome outcome = Decide({"--", "train"}, Adopting("--verbose --timeout '60'"));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code < 0);
  CHECK(outcome.options.verbose == 1);
  CHECK(outcome.options.run_timeout_s == 60);
  for (const char* wrong :
       {"-np 2", "-H a:1", "--min-np 1", "--verbose 'x", "--nix", "--version", "--help",
        "--dry-run", "true", "-- true", "--stdin all", "--bind none", "--gpus-per-rank 1"}) {
    const FrontOutcome refused = Decide({"--", "train"}, Adopting(wrong));
    INFO(wrong << ": " << refused.err);
    CHECK(refused.exit_code == 2);
  }
  CHECK_THAT(Decide({"--", "train"}, Adopting("-np 2")).err, Contains("mpirun has started"));
}

TEST_CASE("a variable that libhvd has not written is refused") {
  FrontWorld world = BoxWorld();
  world.environment.push_back("HVD_ADOPTION=yes");
  const FrontOutcome outcome = Decide({"--", "train"}, world);
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("HVD_ADOPTION is not as hvd writes it"));
}

}  // namespace
}  // namespace hvd::cli
