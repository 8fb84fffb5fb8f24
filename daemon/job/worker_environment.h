// SPDX-License-Identifier: Apache-2.0
// The variables that a worker finds in its environment. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hostfile/topology.h"

namespace hvd::daemon {

struct WorkerEnvironment {
  std::vector<std::string> launcher;   // NAME=VALUE as hvdrun sends it
  std::vector<std::string> host;       // hvdd's own
  std::vector<std::string> own;        // names that the user passed on by -x: beat the host's
  std::vector<std::string> gpu_uuids;  // that it sees; empty: as the host has it
  std::string host_name;
  std::string first_host;  // where rank 0 is
  int hosts = 1;
  std::string link;  // value of HVD_LINK
  std::string job;
  uint64_t member = 0;  // elastic: who it is; 0: the job's members stay
  int host_cores = 0;   // what the host's ranks share; decides how they wait for one another
  RankPlace place;
  int size = 0;
};

// As if the user had typed the command on the host: hvdrun's environment, what belongs to the host
// (HOME, TMPDIR, …) from the host, then the rank's identity.
std::vector<std::string> BuildEnvironment(const WorkerEnvironment& in);

// HOME, SSH_*, …: names whose values belong to a host.
bool BelongsToHost(std::string_view name);

}  // namespace hvd::daemon
