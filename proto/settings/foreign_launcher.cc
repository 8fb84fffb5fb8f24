// SPDX-License-Identifier: Apache-2.0
#include "proto/settings/foreign_launcher.h"

#include <array>
#include <charconv>
#include <cstring>

#include "base/printable.h"

namespace hvd {
namespace {

// A variable by which a launcher tells its processes how many they are. It counts only beside
// `witness`: the size alone may have come another way (an allocation's, a line in a profile).
struct SizeVariable {
  const char* size;
  const char* witness;
  const char* launcher;
};

// The innermost first: who starts torchrun or mpirun by a step of Slurm's has the variables of
// both, and Slurm knows nothing of what its task has started. Slurm's own tell of the step, and
// where they do not, SLURM_NTASKS does. (Slurm sets PMI's two as well, but not Hydra's.)
constexpr std::array kSizeVariables = {
    SizeVariable{"WORLD_SIZE", "TORCHELASTIC_RUN_ID", "torchrun"},
    SizeVariable{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"},
    SizeVariable{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun_rsh"},
    SizeVariable{"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun"},
    SizeVariable{"PMI_SIZE", "MPI_LOCALRANKID", "mpiexec"},
    SizeVariable{"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", "srun"},
    SizeVariable{"SLURM_NTASKS", "SLURM_STEP_ID", "srun"},
    SizeVariable{"PMI_SIZE", "PMI_RANK", "mpiexec"},
    SizeVariable{"MPI_LOCALNRANKS", "MPI_LOCALRANKID", "mpiexec"},
    SizeVariable{"WORLD_SIZE", "RANK", "torchrun, or what sets its variables,"},
};

// Returns the number that `text` is; 0 if it is none.
int NumberIn(const char* text) {
  int number = 0;
  const auto read = std::from_chars(text, text + std::strlen(text), number);
  return *read.ptr == '\0' && read.ec == std::errc() ? number : 0;
}

std::string Shown(const char* name, const char* value) {
  return std::string(name) + "=" + Printable(value, 100);
}

}  // namespace

absl::StatusOr<bool> IsMeantAlone(const EnvironmentLookup& environment) {
  const char* const given = environment("HVD_STANDALONE");
  if (given == nullptr || *given == '\0' || std::strcmp(given, "0") == 0) return false;
  if (std::strcmp(given, "1") == 0) return true;
  return absl::FailedPreconditionError("HVD_STANDALONE is '" + Printable(given, 100) +
                                       "'; it must be 1 (this process runs alone) or 0");
}

std::optional<ForeignLauncher> FindForeignLauncher(const EnvironmentLookup& environment) {
  bool told_one = false, step_of_one = false;
  for (const SizeVariable& each : kSizeVariables) {
    const char* const size = environment(each.size);
    if (size == nullptr || environment(each.witness) == nullptr) continue;
    const bool of_slurm = std::strcmp(each.witness, "SLURM_STEP_ID") == 0;
    if (of_slurm && step_of_one) continue;
    const int number = NumberIn(size);
    if (number > 1) return ForeignLauncher{each.launcher, Shown(each.size, size), number};
    told_one = told_one || number == 1;
    // An interactive step of one task lies in an allocation of several.
    step_of_one = step_of_one || (of_slurm && number == 1);
  }
  const char* const space = environment("PMIX_NAMESPACE");
  if (told_one || space == nullptr || environment("PMIX_RANK") == nullptr) return std::nullopt;
  return ForeignLauncher{"a launcher that speaks PMIx", Shown("PMIX_NAMESPACE", space), 0};
}

}  // namespace hvd
