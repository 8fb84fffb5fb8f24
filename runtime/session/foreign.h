// SPDX-License-Identifier: Apache-2.0
// Launchers that are not hvd's: what they tell a process that they have started beside others.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "runtime/session/environment.h"

namespace hvd {

struct ForeignLauncher {
  std::string name;      // "mpirun"
  std::string evidence;  // "OMPI_COMM_WORLD_SIZE=4"
  int size = 0;          // processes; 0: the launcher does not say how many
};

// The launcher that started this process as one of several; nothing when there is none, or when it
// started just one.
std::optional<ForeignLauncher> FindForeignLauncher(const EnvironmentLookup& environment);

}  // namespace hvd
