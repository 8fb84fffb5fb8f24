// SPDX-License-Identifier: Apache-2.0
// Where another launcher has placed this process among those that it has started, as its variables
// say it. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "proto/settings/environment.h"

namespace hvd::rt {

// By which of the launcher's means its processes can tell one another a few words.
enum class ForeignStore { kNone, kPmix, kPmi1, kTorch };

struct ForeignPlace {
  std::string by;  // the launcher: "mpirun"
  int rank = 0, size = 0;
  int local_rank = 0, local_size = 0;
  ForeignStore store = ForeignStore::kNone;
  // Without a store: what all of this job know and no other job has, and the job's hosts in order.
  std::string job;
  std::vector<HostShape> hosts;  // one without a name: this host
};

// Returns a mark of the nearest process above this one that runs a program of that name; no other
// process of this host has it, now or before. Empty: there is none, or it cannot be seen.
using AncestorLookup = std::function<std::string(const char* program)>;

// Nothing: no launcher has started this process as one of several, or none that hvd can join.
// FailedPrecondition: its variables say what hvd cannot make a job of; the message has the next
// step.
absl::StatusOr<std::optional<ForeignPlace>> FindForeignPlace(const EnvironmentLookup& environment,
                                                             const AncestorLookup& ancestor);

// The key of the claims of a job without a store.
std::string ClaimKeyOf(const ForeignPlace& place);

}  // namespace hvd::rt
