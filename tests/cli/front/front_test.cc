// SPDX-License-Identifier: Apache-2.0
#include "cli/front/front.h"

#include <catch2/catch.hpp>

#include "proto/exit_code.h"
#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("a good command line is run") {
  const FrontOutcome outcome =
      Decide({"-np", "2", "-H", "localhost:4", "./train", "--verbose", "-np"});
  CHECK(outcome.exit_code == -1);
  CHECK(outcome.err.empty());
  CHECK(outcome.options.np == 2);
  CHECK(outcome.options.command == std::vector<std::string>{"./train", "--verbose", "-np"});
  CHECK_FALSE(outcome.options.verbose);
}

TEST_CASE("an elastic job is run without places, which its lists of hosts will give") {
  const RunOptions run = Decide({"--min-np", "2", "-H", "localhost:2,a:2", "./train"}).options;
  CHECK(run.np == 2);
  CHECK(run.hosts.size() == 2);
  CHECK(run.topology.size() == 0);
  CHECK(run.is_local.empty());
  CHECK(run.is_local_host(run.hosts[0]));
}

TEST_CASE("the help begins with what people type and ends with the exit codes") {
  const std::string help = Decide({"--help"}).out;
  size_t at = 0;
  for (const char* next :
       {"\n  hvdrun -np 4 python train.py\n", "\nUsage:", "\nWhere:\n", "\nWorkers:\n",
        "\nQuestions:\n", "--check-build", "\nTimes (", "\nJobs whose members", "\nSettings of",
        "\nExit codes:\n", "\n  125  "}) {
    INFO(next);
    REQUIRE((at = help.find(next, at)) != std::string::npos);
  }
}

TEST_CASE("questions are answered with exit code 0") {
  CHECK_THAT(Decide({"--help"}).out, Contains("Usage: hvdrun [-np N]"));
  CHECK(Decide({"--help"}).exit_code == 0);
  CHECK(Decide({"--version"}).out == "hvdrun " HVD_VERSION "\n");
  CHECK(Decide({"--version"}).exit_code == 0);
  CHECK_THAT(Decide({"-cb"}).out, Contains("libhvd 9.8.7"));
  CHECK(Decide({"-cb"}).exit_code == 0);
  CHECK_THAT(Decide({"-np", "1", "--dry-run", "a"}).out, Contains("rank  host"));
  CHECK(Decide({"-np", "1", "--dry-run", "a"}).exit_code == 0);
}

TEST_CASE("an installation that lacks its library is no success") {
  FrontWorld world = BoxWorld();
  world.probe_library = [] { return LibraryReport{"/x", "missing at /x", {}}; };
  const FrontOutcome outcome = Decide({"--check-build"}, world);
  CHECK_THAT(outcome.out, Contains("libhvd: missing at /x"));
  CHECK(outcome.exit_code == 1);
}

TEST_CASE("settings are checked before anything starts, and listed when asked") {
  FrontWorld world = BoxWorld();
  world.environment = {"HVD_FUSION_THRESHOLD=lots"};
  const FrontOutcome wrong = Decide({"-np", "1", "a"}, world);
  CHECK(wrong.exit_code == kExitUsage);
  CHECK_THAT(wrong.err, StartsWith("hvdrun: HVD_FUSION_THRESHOLD must be bytes"));

  world.environment = {"HOROVOD_FUSION_THRESHOLD=1024", "HVD_AUTOTUN=1"};
  const FrontOutcome quiet = Decide({"-np", "1", "a"}, world);
  CHECK(quiet.exit_code == -1);
  CHECK(quiet.err == "hvdrun: HVD_AUTOTUN is no setting; did you mean HVD_AUTOTUNE?\n");

  const FrontOutcome said = Decide({"-np", "1", "--verbose", "--autotune", "a"}, world);
  CHECK_THAT(said.err, Contains("hvdrun: setting HVD_FUSION_THRESHOLD 1K (from HOROVOD_FUSION_"));
  CHECK_THAT(said.err, Contains("hvdrun: setting HVD_AUTOTUNE 1\n"));
}

TEST_CASE("a command that an option has taken as its value is named") {
  CHECK_THAT(
      Decide({"-np", "2", "--hostfile", "./train"}).err,
      Contains("which command should the ranks run? \"./train\" is the value of --hostfile"));
  CHECK_THAT(Decide({"-np", "2"}).err, StartsWith("hvdrun: which command should the ranks run?\n"));
  CHECK_THAT(Decide({"--verbose"}).err,
             StartsWith("hvdrun: which command should the ranks run?\n"));
  CHECK_THAT(Decide({}).err, StartsWith("hvdrun: which command should the ranks run?\n"));
}

TEST_CASE("an empty command is none") {
  for (const char* const option : {"--verbose", "--dry-run"}) {
    const FrontOutcome outcome = Decide({"-np", "1", option, "", "argument"});
    CHECK(outcome.exit_code == kExitUsage);
    CHECK_THAT(outcome.err, StartsWith("hvdrun: the command is empty; is a variable"));
  }
}

TEST_CASE("nothing wrong ever ends with exit code 0") {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"-np", "2"},
      {"prog"},
      {"-hostfil", "f", "prog"},
      {"-np"},
      {"-np", "0", "prog"},
      {"--help", "--unknown"},
      {"-np", "9", "-H", "a:2", "prog"},
      {"-H", "a:x", "prog"},
      {"-hostfile", "missing", "prog"},
      {"--gloo", "-np", "2", "prog"},
      {"-x", "UNSET", "-np", "2", "prog"},
      {"-np", "2", "--"},
  };
  for (const auto& args : wrong) {
    const FrontOutcome outcome = Decide(args);
    INFO(Catch::StringMaker<std::vector<std::string>>::convert(args));
    CHECK(outcome.exit_code == kExitUsage);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, StartsWith("hvdrun: "));
    CHECK(outcome.err.back() == '\n');
  }
}

TEST_CASE("a Horovod option that is missing is one line") {
  CHECK(Decide({"--jsrun", "-np", "2", "prog"}).err ==
        "hvdrun: --jsrun is Horovod's; hvdrun takes it with --compat horovod, to no effect: "
        "no mpirun or jsrun is started, hvdd starts the ranks\n");
}

TEST_CASE("hvdrun that a launcher has started several times makes no job") {
  FrontWorld world = BoxWorld();
  const auto decide = [&](std::vector<std::string> variables) {
    world.environment = std::move(variables);
    return Decide({"-np", "2", "prog"}, world);
  };
  const FrontOutcome refused = decide({"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=1"});
  CHECK(refused.exit_code == kExitUsage);
  CHECK_THAT(refused.err,
             Contains("mpirun has started hvdrun several times (OMPI_COMM_WORLD_SIZE=4)"));
  CHECK_THAT(refused.err, Contains("hvdrun -np 4 PROGRAM"));
  CHECK_THAT(decide({"PMIX_NAMESPACE=a", "PMIX_RANK=0"}).err, Contains("hvdrun -np N PROGRAM"));
  CHECK(decide({"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0"}).exit_code == -1);
  CHECK(decide({"WORLD_SIZE=4", "RANK=0", "HVD_STANDALONE=1"}).exit_code == -1);
  CHECK(decide({"WORLD_SIZE=4", "RANK=0", "HVD_RANK=0"}).exit_code == -1);  // of a job of ours
  CHECK_THAT(decide({"HVD_STANDALONE=yes"}).err, Contains("HVD_STANDALONE is 'yes'"));
}

TEST_CASE("this machine knows itself") {
  const FrontWorld world = ThisMachine();
  CHECK_FALSE(world.host_name.empty());
  CHECK_FALSE(world.cores.empty());
  CHECK(world.directory.front() == '/');
  CHECK(std::find(world.addresses.begin(), world.addresses.end(), "127.0.0.1") !=
        world.addresses.end());
  CHECK(world.file_exists("/"));
  CHECK_FALSE(world.file_exists("/no/such/file"));
}

}  // namespace
}  // namespace hvd::cli
