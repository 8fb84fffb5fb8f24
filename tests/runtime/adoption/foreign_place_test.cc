// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/foreign_place.h"

#include <catch2/catch.hpp>
#include <map>

namespace hvd::rt {
namespace {

using Variables = std::map<std::string, std::string>;
using Catch::Matchers::Contains;

// `proxy`: what is known of Hydra's process on this host.
absl::StatusOr<std::optional<ForeignPlace>> Find(const Variables& variables,
                                                 const std::string& proxy = "") {
  return FindForeignPlace(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      [&](const char*) { return proxy; });
}

ForeignPlace Place(const Variables& variables) {
  const auto place = Find(variables);
  INFO(place.status());
  REQUIRE(place.ok());
  REQUIRE(place->has_value());
  return **place;
}

std::string WhyNot(const Variables& variables) {
  const auto place = Find(variables);
  REQUIRE_FALSE(place.ok());
  return std::string(place.status().message());
}

Variables Mpirun(const std::string& rank, const std::string& local_size) {
  return {{"OMPI_COMM_WORLD_RANK", rank},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", rank == "3" ? "1" : rank},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size},
          {"PMIX_NAMESPACE", "17.1"},
          {"PMIX_RANK", rank}};
}

Variables Srun(const std::string& rank, const std::string& local, const std::string& node) {
  return {{"SLURM_PROCID", rank},        {"SLURM_LOCALID", local},
          {"SLURM_NODEID", node},        {"SLURM_STEP_NODELIST", "n[1-2]"},
          {"SLURM_JOB_ID", "7"},         {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "2,1"}};
}

Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables.insert_or_assign(name, value);
  return variables;
}

TEST_CASE("mpirun's processes on one host need no store, on several they need PMIx") {
  const ForeignPlace one = Place(Mpirun("0", "4"));
  CHECK(one.by == "mpirun");
  CHECK(one.store == ForeignStore::kNone);
  CHECK(one.hosts == std::vector<HostShape>{{"", 4}});
  const ForeignPlace two = Place(Mpirun("3", "2"));
  CHECK(two.store == ForeignStore::kPmix);
  CHECK(two.rank == 3);
  CHECK(two.local_rank == 1);
  CHECK(two.local_size == 2);
}

TEST_CASE("all of a job have the same key, and no other job has it") {
  const std::string key = ClaimKeyOf(Place(Mpirun("0", "4")));
  CHECK(key == ClaimKeyOf(Place(Mpirun("2", "4"))));
  CHECK(key != ClaimKeyOf(Place(With(Mpirun("0", "4"), "PMIX_NAMESPACE", "17.2"))));
  CHECK(key.find_first_not_of("0123456789abcdef") == std::string::npos);
}

TEST_CASE("a step of Slurm's is told by its variables alone") {
  const ForeignPlace place = Place(Srun("2", "0", "1"));
  CHECK(place.by == "srun");
  CHECK(place.store == ForeignStore::kNone);
  CHECK(place.size == 3);
  CHECK(place.local_size == 1);
  CHECK(place.hosts == std::vector<HostShape>{{"n1", 2}, {"n2", 1}});
  CHECK(ClaimKeyOf(place) == ClaimKeyOf(Place(Srun("0", "0", "0"))));
}

// Returns the hosts of a step of "4,1,2" tasks, with `how` as its distribution.
std::vector<HostShape> InTurn(const std::string& how, Variables rank) {
  rank["SLURM_STEP_NODELIST"] = "n[1-3]";
  rank["SLURM_STEP_TASKS_PER_NODE"] = "4,1,2";
  rank["SLURM_STEP_NUM_TASKS"] = "7";
  rank["SLURM_DISTRIBUTION"] = how;
  if (how == "plane") rank["SLURM_DIST_PLANESIZE"] = "2";
  return Place(rank).hosts;
}

TEST_CASE("a step's ranks may go in turn over the hosts, as srun numbers them") {
  const std::vector<HostShape> cyclic = {
      {"n1", 4, {0, 3, 5, 6}}, {"n2", 1, {1}}, {"n3", 2, {2, 4}}};
  CHECK(InTurn("cyclic", Srun("4", "1", "2")) == cyclic);
  CHECK(InTurn("cyclic:block", Srun("6", "3", "0")) == cyclic);
  CHECK(InTurn("plane", Srun("3", "0", "2")) ==
        std::vector<HostShape>{{"n1", 4, {0, 1, 5, 6}}, {"n2", 1, {2}}, {"n3", 2, {3, 4}}});
  CHECK(InTurn("block", Srun("4", "0", "1")) ==
        std::vector<HostShape>{{"n1", 4}, {"n2", 1}, {"n3", 2}});
}

TEST_CASE("a step in an order that its variables don't tell is refused with the way out") {
  CHECK_THAT(WhyNot(Srun("1", "0", "1")), Contains("use srun -m block"));
  const Variables first = With(Srun("0", "0", "0"), "SLURM_DISTRIBUTION", "arbitrary");
  CHECK_THAT(WhyNot(first), Contains("(-m arbitrary)"));
  CHECK_THAT(WhyNot(With(first, "SLURM_DISTRIBUTION", "plane")), Contains("(-m plane)"));
  CHECK_THAT(WhyNot(Srun("3", "0", "1")), Contains("SLURM_PROCID"));
}

TEST_CASE("mpiexec needs its wire, torchrun its store") {
  const Variables hydra = {{"PMI_RANK", "1"},
                           {"PMI_SIZE", "2"},
                           {"MPI_LOCALRANKID", "1"},
                           {"MPI_LOCALNRANKS", "2"},
                           {"PMI_FD", "9"}};
  CHECK(Place(hydra).store == ForeignStore::kPmi1);
  CHECK_THAT(WhyNot(Without(hydra, "PMI_FD")), Contains("PMI_FD is not set"));
  const auto here = Find(hydra, "17.4711");
  REQUIRE(here.ok());
  CHECK((*here)->store == ForeignStore::kNone);
  const auto one_of_two = Find(With(hydra, "PMI_SIZE", "4"), "17.4711");
  REQUIRE(one_of_two.ok());
  CHECK((*one_of_two)->store == ForeignStore::kPmi1);
  const Variables torch = {{"RANK", "1"},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "a"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_RUN_ID", "none"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  CHECK(Place(torch).store == ForeignStore::kTorch);
  CHECK_THAT(WhyNot(Without(torch, "TORCHELASTIC_USE_AGENT_STORE")), Contains("no store"));
  CHECK_THAT(WhyNot(Without(torch, "LOCAL_RANK")), Contains("LOCAL_RANK is not set"));
  const Variables alone = With(torch, "LOCAL_WORLD_SIZE", "4");
  CHECK(Place(alone).store == ForeignStore::kNone);
  // A job that torchrun starts again is another job.
  CHECK(ClaimKeyOf(Place(alone)) !=
        ClaimKeyOf(Place(With(alone, "TORCHELASTIC_RESTART_COUNT", "1"))));
}

TEST_CASE("what makes no sense is refused, never a job of one") {
  CHECK_THAT(WhyNot(With(Mpirun("0", "4"), "OMPI_COMM_WORLD_RANK", "4")),
             Contains("do not fit together") && Contains("hvdrun -np 4 PROGRAM") &&
                 Contains("HVD_STANDALONE=1"));
  CHECK_THAT(WhyNot(With(Mpirun("0", "4"), "OMPI_COMM_WORLD_RANK", "x")), Contains("is x"));
  CHECK_THAT(WhyNot(Without(Mpirun("0", "4"), "PMIX_NAMESPACE")), Contains("PMIX_NAMESPACE"));
  CHECK_THAT(WhyNot(Without(Srun("0", "0", "0"), "SLURM_STEP_TASKS_PER_NODE")),
             Contains("SLURM_STEP_TASKS_PER_NODE"));
}

TEST_CASE("who is alone, or one of hvdrun's, is nobody else's") {
  CHECK_FALSE(Find({})->has_value());
  CHECK_FALSE(Find(With(Mpirun("0", "4"), "HVD_STANDALONE", "1"))->has_value());
  CHECK_FALSE(Find(With(Mpirun("0", "4"), "HVD_LINK", "1:2:x:y"))->has_value());
  CHECK_FALSE(Find(With(Mpirun("0", "4"), "HVD_RANK", "1"))->has_value());
  CHECK_FALSE(Find({{"JSM_NAMESPACE_SIZE", "4"}, {"JSM_NAMESPACE_RANK", "0"}})->has_value());
}

}  // namespace
}  // namespace hvd::rt
