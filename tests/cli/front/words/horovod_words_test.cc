// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/horovod_words.h"

#include <catch2/catch.hpp>

#include "cli/front/words/options.h"
#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;

FrontWorld World(const std::string& config = "") {
  FrontWorld world = BoxWorld(
      {{"/opt/share/hvd/python/hvd/compat/startup/sitecustomize.py", ""}, {"job.yaml", config}});
  world.program_directory = "/opt/bin";
  return world;
}

FrontOutcome Run(Words words, const FrontWorld& world = World()) {
  words.insert(words.begin(), {"-np", "2", "--compat", "horovod"});
  words.push_back("prog");
  return Decide(words, world);
}

std::string ValueOf(const FrontOutcome& outcome, const std::string& name) {
  for (const std::string& entry : outcome.options.environment) {
    if (entry.rfind(name + "=", 0) == 0) return entry.substr(name.size() + 1);
  }
  return "";
}

TEST_CASE("flags without effect are told once for each reason") {
  const FrontOutcome outcome = Run({"--gloo", "--mpi-args", "-x A", "--mpi", "--gloo", "--jsrun"});
  CHECK(outcome.exit_code == -1);
  CHECK(outcome.err ==
        "hvdrun: --gloo, --mpi have no effect: there is one engine, no choice of controllers\n"
        "hvdrun: --mpi-args, --jsrun have no effect: no mpirun or jsrun is started, hvdd starts "
        "the ranks\n");
}

TEST_CASE("interfaces that are given one by one add up") {
  const FrontOutcome outcome =
      Run({"--network-interface", "eth0", "--network-interface", "eth1,eth2"});
  CHECK(ValueOf(outcome, "HVD_NET_DEVICES") == "eth0,eth1,eth2");
}

TEST_CASE("--output-filename's files are written by hvdrun itself, on this host") {
  const FrontOutcome outcome = Run({"--output-filename", "out"});
  CHECK(outcome.options.output_directory == "/home/me/job/out");
  CHECK(outcome.options.files_here);
  CHECK_FALSE(Decide({"-np", "2", "--output-filename", "out", "prog"}).options.files_here);
}

TEST_CASE("the name horovodrun stands for --compat horovod") {
  const FrontWorld world = World();
  for (const char* name : {"horovodrun", "/usr/bin/horovodrun"}) {
    const char* const argv[] = {name, "-np", "2", "--gloo", "prog"};
    const FrontOutcome outcome = DecideRun(5, argv, world);
    CHECK(outcome.exit_code == -1);
    CHECK(outcome.options.compat_horovod);
    CHECK_THAT(outcome.err, StartsWith("hvdrun: --gloo has no effect"));
  }
  const char* const argv[] = {"/opt/horovodrun/hvdrun", "-np", "2", "--gloo", "prog"};
  CHECK(DecideRun(5, argv, world).exit_code == 2);
}

TEST_CASE("the program's own --compat and --gloo are the program's") {
  const FrontOutcome outcome = Decide({"-np", "1", "prog", "--compat", "horovod", "--gloo"});
  CHECK(outcome.exit_code == -1);
  CHECK_FALSE(outcome.options.compat_horovod);
  CHECK(outcome.options.command == Words{"prog", "--compat", "horovod", "--gloo"});
  CHECK(Decide({"-np", "1", "--gloo", "prog", "--compat", "horovod"}).exit_code == 2);
}

TEST_CASE("horovodrun's help has its flags and keys as well") {
  const std::string own = Decide({"--help"}).out;
  CHECK_THAT(own, !Contains("--mpi-args"));
  const std::string help = Decide({"--help", "--compat", "horovod"}).out;
  CHECK_THAT(help, StartsWith(own));
  CHECK_THAT(help, Contains("  --mpi-args\n      taken, and told: no mpirun or jsrun is started"));
  CHECK_THAT(help, Contains("\n  params.fusion_threshold_mb\n"));
}

TEST_CASE("a misspelt flag of horovodrun is compared with all that there are") {
  const FrontOutcome outcome = Run({"--cache-capcity", "3"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err ==
        "hvdrun: unknown option \"--cache-capcity\"; did you mean --cache-capacity?\n");
  CHECK_THAT(Run({"--mpi-args"}).err, Contains("unknown option") || Contains("which command"));
}

TEST_CASE("HOROVOD_START_TIMEOUT counts where no option does") {
  FrontWorld world = World();
  world.environment.push_back("HOROVOD_START_TIMEOUT=77");
  CHECK(Decide({"-np", "1", "prog"}, world).options.start_timeout_s == 77);
  CHECK(Run({}, world).options.start_timeout_s == 77);
  CHECK(Run({"--start-timeout", "5"}, world).options.start_timeout_s == 5);
  CHECK_THAT(Run({"--verbose"}, world).err, Contains("77 (from HOROVOD_START_TIMEOUT)"));
  world.environment.back() = "HOROVOD_START_TIMEOUT=";
  CHECK(Run({}, world).options.start_timeout_s == 30);
  world.environment.back() = "HOROVOD_START_TIMEOUT=soon";
  const FrontOutcome wrong = Run({}, world);
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, StartsWith("hvdrun: HOROVOD_START_TIMEOUT: --start-timeout: \"soon\" is "));
  CHECK_THAT(wrong.err, Contains("  HOROVOD_START_TIMEOUT=soon\n                        ^"));
  CHECK(Decide({"--help"}, world).exit_code == 0);
}

TEST_CASE("HOROVOD_ELASTIC_TIMEOUT counts in an elastic job, where no option does") {
  FrontWorld world = World();
  world.environment.push_back("HOROVOD_ELASTIC_TIMEOUT=77");
  CHECK(Run({}, world).exit_code == -1);
  CHECK(Run({"--min-np", "1"}, world).options.elastic->elastic_timeout_s == 77);
  CHECK(
      Run({"--max-np", "9", "--elastic-timeout", "5"}, world).options.elastic->elastic_timeout_s ==
      5);
  world.environment.back() = "HOROVOD_ELASTIC_TIMEOUT=soon";
  CHECK(Run({}, world).exit_code == -1);
  const FrontOutcome wrong = Run({"--min-np", "1"}, world);
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, StartsWith("hvdrun: HOROVOD_ELASTIC_TIMEOUT: --elastic-timeout: \"soon"));
}

TEST_CASE("the config file counts where the command line says nothing, in any order") {
  const FrontWorld world =
      World("params:\n  fusion_threshold_mb: 3\nstall_check:\n  enabled: false\n");
  for (const bool first : {true, false}) {
    Words words = {"--fusion-threshold-mb", "5", "--stall-check"};
    words.insert(first ? words.begin() : words.end(), {"--config-file", "job.yaml"});
    const FrontOutcome outcome = Run(words, world);
    INFO(outcome.err);
    CHECK(outcome.exit_code == -1);
    CHECK(ValueOf(outcome, "HVD_FUSION_THRESHOLD") == "5M");
    CHECK(ValueOf(outcome, "HVD_STALL_CHECK_DISABLE") == "0");
  }
  const FrontOutcome outcome = Run({"--config-file", "job.yaml", "--verbose"}, world);
  CHECK(ValueOf(outcome, "HVD_FUSION_THRESHOLD") == "3M");
  CHECK(ValueOf(outcome, "HVD_STALL_CHECK_DISABLE") == "1");
  CHECK_THAT(outcome.err, Contains("--fusion-threshold-mb 3 (from job.yaml:2)"));
}

TEST_CASE("a value that no option takes is shown where it stands in the file") {
  const FrontOutcome outcome =
      Run({"--config-file", "job.yaml"}, World("logging:\n  level: loud\n"));
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, StartsWith("hvdrun: job.yaml:2:10: --log-level must be one of trace,"));
  CHECK_THAT(outcome.err, Contains("\n    level: loud\n           ^\n"));
  CHECK_THAT(Run({"--config-file", "nope"}).err,
             StartsWith("hvdrun: the config file nope is not there"));
}

}  // namespace
}  // namespace hvd::cli
