// SPDX-License-Identifier: Apache-2.0
// Launchers that are not hvd's: what they tell a process that they have started beside others.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/settings/environment.h"

namespace hvd {

struct ForeignLauncher {
  std::string name;      // "mpirun"
  std::string evidence;  // "OMPI_COMM_WORLD_SIZE=4"
  int size = 0;          // processes; 0: the launcher does not say how many
};

// Whether HVD_STANDALONE says that this process is to run alone, whoever has started it.
// FailedPrecondition when it has no such value.
absl::StatusOr<bool> IsMeantAlone(const EnvironmentLookup& environment);

// The launcher that started this process as one of several; nothing when there is none, or when it
// started just one.
std::optional<ForeignLauncher> FindForeignLauncher(const EnvironmentLookup& environment);

}  // namespace hvd
