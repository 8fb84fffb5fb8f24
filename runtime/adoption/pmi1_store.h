// SPDX-License-Identifier: Apache-2.0
// The store of mpiexec.hydra, MPICH's and Intel MPI's: PMI-1 on the descriptor that PMI_FD names.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/adoption/launcher_store.h"

namespace hvd::rt {

// `fd` stays open, and the program's own. Its MPI may begin before or after, but an MPI_Init fails
// after the store's end: the store is to last as long as the process.
absl::StatusOr<std::unique_ptr<LauncherStore>> OpenPmi1Store(int fd, int rank, int size);

}  // namespace hvd::rt
