// SPDX-License-Identifier: Apache-2.0
// The store of mpirun (Open MPI) and of srun --mpi=pmix: PMIx.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/adoption/launcher_store.h"
#include "runtime/adoption/pmix_library.h"

namespace hvd::rt {

// The program's MPI uses the same library. An MPI_Init fails after the store's end, so the store is
// to last as long as the process. MPI_Init of Open MPI 5 fails as well where PMIx has begun before
// it: a program that has this MPI calls MPI_Init first.
//
// Opening waits for no other process. It waits for the launcher's daemon on this host as long as
// PMIx does, which has no limit.
absl::StatusOr<std::unique_ptr<LauncherStore>> OpenPmixStore(int rank, int size,
                                                             const PmixPlaces& places);
// Looks where this process's environment leads.
absl::StatusOr<std::unique_ptr<LauncherStore>> OpenPmixStore(int rank, int size);

}  // namespace hvd::rt
