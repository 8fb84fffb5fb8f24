// SPDX-License-Identifier: Apache-2.0
// The introduction of each rank of another launcher's to all others by the launcher's store, and
// what all of them come to: the job's hosts. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/adoption.h"

namespace hvd::rt {

struct Introduction {
  std::string host;
  std::string identity;  // of the host: the same for all its names, and no other has it
  int local_rank = 0, local_size = 0;
  std::string key;     // rank 0: of the job's claims
  AdoptedHost daemon;  // local rank 0: how the daemon that it has wait is called
};

std::string FormatIntroduction(const Introduction& introduction);

// `texts` by rank. FailedPrecondition: hosts that cannot be told from one another have ranks in
// turn, or a rank says what no hvd of this version says. Within a host ranks may be in any order:
// hvd's local ranks follow the ranks, as Open MPI's do not. A machine that a launcher takes for
// several hosts, as two torchruns on one machine do, is one host.
absl::StatusOr<Adoption> GatherAdoption(const std::string& by,
                                        const std::vector<std::string>& texts);

}  // namespace hvd::rt
