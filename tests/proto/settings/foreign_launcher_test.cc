// SPDX-License-Identifier: Apache-2.0
#include "proto/settings/foreign_launcher.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

namespace hvd {
namespace {

using Variables = std::map<std::string, std::string>;

EnvironmentLookup In(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string Evidence(const Variables& variables) {
  const auto launcher = FindForeignLauncher(In(variables));
  return launcher ? launcher->name + " " + launcher->evidence + " " + std::to_string(launcher->size)
                  : "";
}

TEST_CASE("each launcher's variables tell that it has started several") {
  CHECK(Evidence({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "0"}}) ==
        "mpirun OMPI_COMM_WORLD_SIZE=4 4");
  CHECK(Evidence({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}) == "mpiexec PMI_SIZE=2 2");
  CHECK(Evidence({{"MPI_LOCALNRANKS", "3"}, {"MPI_LOCALRANKID", "1"}}) ==
        "mpiexec MPI_LOCALNRANKS=3 3");
  CHECK(Evidence({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "7"}}) ==
        "srun SLURM_NTASKS=8 8");
  CHECK(Evidence({{"WORLD_SIZE", "2"}, {"RANK", "0"}}) ==
        "torchrun, or what sets its variables, WORLD_SIZE=2 2");
  CHECK(Evidence({{"MV2_COMM_WORLD_SIZE", "2"}, {"MV2_COMM_WORLD_RANK", "0"}}) ==
        "mpirun_rsh MV2_COMM_WORLD_SIZE=2 2");
  CHECK(Evidence({{"JSM_NAMESPACE_SIZE", "2"}, {"JSM_NAMESPACE_RANK", "0"}}) ==
        "jsrun JSM_NAMESPACE_SIZE=2 2");
  CHECK(Evidence({{"PMIX_NAMESPACE", "prte-7"}, {"PMIX_RANK", "0"}}) ==
        "a launcher that speaks PMIx PMIX_NAMESPACE=prte-7 0");
}

TEST_CASE("of several launchers the innermost counts") {
  const Variables step = {
      {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}};
  const Variables one = {
      {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}};
  const Variables torchrun = {{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "3"}, {"WORLD_SIZE", "4"}};
  const Variables hydra = {
      {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  for (const Variables& outer : {step, one}) {
    for (const auto& [inner, evidence] : {std::pair(torchrun, "torchrun WORLD_SIZE=4 4"),
                                          std::pair(hydra, "mpiexec PMI_SIZE=4 4")}) {
      Variables both = outer;
      both.insert(inner.begin(), inner.end());
      CHECK(Evidence(both) == evidence);
    }
  }
  // Slurm's own PMI is no Hydra's.
  Variables pmi2 = step;
  pmi2.insert({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  CHECK(Evidence(pmi2) == "srun SLURM_STEP_NUM_TASKS=2 2");
}

TEST_CASE("one process is alone, whoever has started it") {
  CHECK(Evidence({}).empty());
  CHECK(Evidence({{"OMPI_COMM_WORLD_SIZE", "1"},
                  {"OMPI_COMM_WORLD_RANK", "0"},
                  {"PMIX_NAMESPACE", "a"},
                  {"PMIX_RANK", "0"}})
            .empty());
  CHECK(Evidence({{"WORLD_SIZE", "1"}, {"RANK", "0"}}).empty());
}

TEST_CASE("a shell in an allocation is alone, and so is an interactive step of one task") {
  CHECK(Evidence({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}}).empty());
  CHECK(Evidence(
            {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}})
            .empty());
}

TEST_CASE("a size without a rank has come another way") {
  CHECK(Evidence({{"WORLD_SIZE", "4"}}).empty());
  CHECK(Evidence({{"PMI_SIZE", "4"}}).empty());
}

TEST_CASE("what is no number tells nothing") {
  CHECK(Evidence({{"WORLD_SIZE", "many"}, {"RANK", "0"}}).empty());
  CHECK(Evidence({{"WORLD_SIZE", ""}, {"RANK", ""}}).empty());
  CHECK(Evidence({{"WORLD_SIZE", "2x"}, {"RANK", "0"}}).empty());
}

}  // namespace
}  // namespace hvd
