// SPDX-License-Identifier: Apache-2.0
#include "cli/front/plan.h"

#include <catch2/catch.hpp>

#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;

absl::StatusOr<RunOptions> Plan(Words args, const FrontWorld& world = BoxWorld()) {
  args.push_back("prog");
  const auto typed = ParseOptions(args);
  REQUIRE(typed.ok());
  return PlanRun(*typed, world);
}

std::string Refusal(const Words& args, const FrontWorld& world = BoxWorld()) {
  return std::string(Plan(args, world).status().message());
}

TEST_CASE("without hosts the ranks run here") {
  const auto run = Plan({"-np", "3"});
  REQUIRE(run.ok());
  CHECK(run->np == 3);
  CHECK(run->hosts_source == "localhost");
  CHECK(run->topology.hosts() == std::vector<HostShape>{{"localhost", 3}});
  CHECK(run->is_local == std::vector<bool>{true});
  CHECK(run->host_of.size() == 1);
  CHECK(Refusal({}) == "how many ranks? Give -np N, or hosts with their slots by -H or --hostfile");
}

TEST_CASE("-np is exact and defaults to all slots of the hosts") {
  CHECK(Plan({"-np", "2", "-H", "localhost:4"})->topology.size() == 2);
  CHECK(Plan({"-H", "a:4,b:3"})->topology.size() == 7);
  CHECK_THAT(Refusal({"-np", "5", "-H", "a:4"}),
             StartsWith("-np 5 needs 5 slots, but 1 host has 4"));
  CHECK_THAT(Refusal({"-H", "a[1-2]:65536"}),
             StartsWith("the hosts have 131072 slots; give -np N"));
}

TEST_CASE("an elastic job starts with as many ranks as fit, if the least fits") {
  const auto fewer = Plan({"-np", "8", "--min-np", "2", "-H", "localhost:4,a:2"});
  REQUIRE(fewer.ok());
  CHECK(fewer->np == 6);
  CHECK(fewer->topology.size() == 6);
  CHECK(fewer->notes == Words{"the hosts have 6 slots for -np 8; the start needs 6 ranks"});
  CHECK(Plan({"-np", "3", "--min-np", "2", "-H", "a:4"})->topology.size() == 3);
  CHECK_THAT(Refusal({"-np", "8", "--min-np", "5", "-H", "a:4"}),
             StartsWith("--min-np 5 needs 5 slots, but 1 host has 4"));
}

TEST_CASE("where -np is missing, an elastic job starts with its least, else with all slots") {
  const auto least = Plan({"--min-np", "2", "-H", "a:4"});
  CHECK(least->np == 2);
  CHECK(least->elastic->min_np == 2);
  CHECK(Plan({"--min-np", "3"})->topology.hosts() == std::vector<HostShape>{{"localhost", 3}});
  const auto all = Plan({"--max-np", "5", "-H", "a:4,b:4"});
  CHECK(all->np == 5);
  CHECK(all->elastic->min_np == 5);
  CHECK_THAT(Refusal({"--max-np", "4"}), StartsWith("how many ranks? Give -np N"));
}

TEST_CASE("a script of hosts leaves the places open") {
  FrontWorld world = BoxWorld({{"hosts", "a:4\n"}});
  world.environment.push_back("HVD_HOSTFILE=hosts");  // what is typed counts
  const auto run = Plan({"-np", "3", "--min-np", "2", "--host-discovery-script", "./hosts"}, world);
  REQUIRE(run.ok());
  CHECK(run->np == 3);
  CHECK(run->hosts.empty());
  CHECK(run->topology.size() == 0);
  CHECK(run->hosts_source == "--host-discovery-script");
  CHECK(run->elastic->hostfile.empty());
  CHECK(Refusal({"--host-discovery-script", "./hosts"}) ==
        "how many ranks? Give -np N, or --min-np N for the least that the job can go on with");
  CHECK_THAT(Refusal({"--min-np", "2", "--stdin", "2", "--host-discovery-script", "./hosts"}),
             StartsWith("--stdin 2: the last rank"));
}

TEST_CASE("an elastic job knows its hostfile's place and what a host without slots has") {
  const FrontWorld world = BoxWorld({{"../hosts", "a\nb max_slots=2\nc slots=1\n"}});
  const auto run = Plan({"--min-np", "1", "--slots", "3", "--hostfile", "../hosts"}, world);
  REQUIRE(run.ok());
  CHECK(run->elastic->hostfile == "/home/me/hosts");
  REQUIRE(run->hosts.size() == 3);
  CHECK(run->hosts[0].slots == 3);
  CHECK(run->hosts[1].slots == 2);
  CHECK(run->hosts[2].slots == 1);
  CHECK(Plan({"--min-np", "1", "--slots", "3", "-H", "a,b:2"})->hosts[0].slots == 3);
}

TEST_CASE("a host that is found later is judged as those of the list are") {
  const auto run = Plan({"--min-np", "1", "--host-discovery-script", "./hosts"});
  HostSlots host;
  host.name = "10.0.0.5";
  CHECK(run->is_local_host(host));
  host.port = 22;
  CHECK_FALSE(run->is_local_host(host));
}

TEST_CASE("more slots than one host can have ranks are left free in an elastic job") {
  CHECK(Plan({"-np", "200", "--min-np", "2", "-H", "a:200,b:200"})->topology.hosts() ==
        std::vector<HostShape>{{"a", 128}, {"b", 72}});
}

TEST_CASE("a host has at most 128 ranks of a job") {
  CHECK(Plan({"-np", "128"}).ok());
  CHECK(Plan({"-np", "200", "-H", "a:128,b:128"}).ok());
  CHECK(Refusal({"-np", "200"}) ==
        "200 ranks on localhost: one host runs at most 128 ranks of a job; give more hosts by -H "
        "or --hostfile, or a smaller -np");
  CHECK_THAT(Refusal({"-H", "a:4,b:129"}), StartsWith("129 ranks on b: one host runs at most 128"));
}

TEST_CASE("host_of and is_local follow the topology's hosts") {
  const auto run = Plan({"-np", "5", "-H", "u@a:2,box:3,c:4"});
  REQUIRE(run.ok());
  CHECK(run->hosts.size() == 3);
  CHECK(run->topology.hosts() == std::vector<HostShape>{{"a", 2}, {"box", 3}});
  REQUIRE(run->host_of.size() == 2);
  CHECK(run->host_of[0].user == "u");
  CHECK(run->is_local == std::vector<bool>{false, true});
}

TEST_CASE("hosts come from -H, then --hostfile, then HVD_HOSTFILE") {
  FrontWorld world = BoxWorld({{"f", "a slots=2\n"}, {"/etc/g", "b slots=3\n"}});
  world.environment.push_back("HVD_HOSTFILE=/etc/g");
  CHECK(Plan({"-H", "c:1"}, world)->hosts_source == "-H");
  const auto file = Plan({"-hostfile", "f"}, world);
  CHECK(file->hosts_source == "f");
  CHECK(file->topology.hosts() == std::vector<HostShape>{{"a", 2}});
  const auto variable = Plan({}, world);
  CHECK(variable->hosts_source == "/etc/g");
  CHECK(variable->np == 3);
  world.environment.back() = "HVD_HOSTFILE=nope";
  CHECK(Refusal({}, world) == "the hostfile nope is not there\n  $HVD_HOSTFILE names this file");
  world.environment.back() = "HVD_HOSTFILE=";
  CHECK(Plan({"-np", "1"}, world)->hosts_source == "localhost");
}

TEST_CASE("a wrong hostfile is shown with line, column and caret") {
  const FrontWorld world = BoxWorld({{"f", "a slots=2\nb slot=4\n"}});
  CHECK(Refusal({"-hostfile", "f"}, world) ==
        "f:2:3: unknown key \"slot\"\n  b slot=4\n    ^\n  did you mean slots=?");
  CHECK(Refusal({"-hostfile", "nope"}) == "the hostfile nope is not there");
}

TEST_CASE("paths become absolute") {
  const auto run =
      Plan({"-np", "1", "--output-filename", "out/../o", "--prefix", "../hvd", "-i", "key"},
           BoxWorld({{"/home/me/job/key", ""}}));
  REQUIRE(run.ok());
  CHECK(run->directory == "/home/me/job");
  CHECK(run->output_directory == "/home/me/job/o");
  CHECK(run->prefix == "/home/me/hvd");
  CHECK(run->ssh_identity == "/home/me/job/key");
  CHECK(Plan({"-np", "1"})->output_directory.empty());
  CHECK_THAT(Refusal({"-np", "1", "-i", "nokey"}), Contains("there is no file /home/me/job/nokey"));
}

TEST_CASE("the grace: what is typed, then HVD_GRACE, then what programs ask for") {
  FrontWorld world = BoxWorld();
  const auto grace = [&world](std::vector<std::string> words) {
    words.insert(words.end(), {"-np", "1"});
    const auto run = Plan(words, world);
    REQUIRE(run.ok());
    return std::pair(run->grace_s, run->grace_is_given);
  };
  CHECK(grace({}) == std::pair(5.0, false));
  CHECK(grace({"--grace", "5"}) == std::pair(5.0, true));
  CHECK(grace({"-x", "HVD_GRACE=1m"}) == std::pair(60.0, true));
  world.environment.push_back("HVD_GRACE=25s");
  CHECK(grace({}) == std::pair(25.0, true));
  CHECK(grace({"--grace", "1"}) == std::pair(1.0, true));
  CHECK(grace({"--no-stall-check"}) == std::pair(25.0, true));
}

TEST_CASE("the workers' environment and stdin are settled") {
  const auto run = Plan({"-np", "2", "-x", "BAR=2", "--stdin", "1"});
  REQUIRE(run.ok());
  CHECK(run->environment == Words{"BAR=2", "FOO=1", "PATH=/bin"});
  CHECK(run->own_environment == Words{"BAR"});
  CHECK(run->stdin_rank == 1);
  CHECK_FALSE(run->gpus_per_rank.has_value());
  CHECK(Refusal({"-np", "2", "--stdin", "2"}) == "--stdin 2: the last rank of -np 2 is 1");
}

TEST_CASE("who names GPUs by -x has them left alone, and cannot ask for others") {
  const std::string mine = "CUDA_VISIBLE_DEVICES=1";
  CHECK(Plan({"-np", "1", "-x", mine})->gpus_per_rank == 0);
  CHECK(Plan({"-np", "1", "-x", mine, "--gpus-per-rank", "0"})->gpus_per_rank == 0);
  CHECK(Plan({"-np", "1", "--gpus-per-rank", "2"})->gpus_per_rank == 2);
  CHECK(Refusal({"-np", "1", "-x", mine, "--gpus-per-rank", "1"}) ==
        "--gpus-per-rank 1 gives each rank a CUDA_VISIBLE_DEVICES of its own, and so does -x; "
        "keep one of them");
}

}  // namespace
}  // namespace hvd::cli
