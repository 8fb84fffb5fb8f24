// SPDX-License-Identifier: Apache-2.0
// Turns the driver's words on a host and on its epochs into what each worker is started with. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/job/host_facts.h"
#include "daemon/members/epoch_plan.h"
#include "daemon/shim/spawn_order.h"
#include "hvd/v1/link_a.pb.h"
#include "placement/host_plan.h"

namespace hvd::daemon {

// InvalidArgument: the words make no sense; says what is wrong with them.
absl::Status CheckPrepare(const v1::PrepareHost& prepare);
absl::StatusOr<EpochPlan> PlanEpoch(const v1::EpochPropose& propose,
                                    const v1::PrepareHost& prepare);

// Returns the part of the host that each slot gets. FailedPrecondition: the host has too little.
absl::StatusOr<HostPlan> PlanShares(const v1::PrepareHost& prepare, const HostDevices& devices);
// The same in link A's words.
void TellShares(const HostPlan& shares, v1::Launched* launched);

struct SlotLink {
  int slot = 0;
  std::string link;  // HVD_LINK
  int door_fd = -1;
  int share = 0;        // of the host
  uint64_t member = 0;  // elastic; 0: the job's members stay
};

struct SpawnContext {
  const v1::PrepareHost& prepare;
  const EpochPlan& plan;  // the newest; elastic: as it would be with the worker
  const HostFacts& facts;
  const HostPlan& shares;
};
SpawnOrder OrderFor(const SlotLink& link, const SpawnContext& context);

}  // namespace hvd::daemon
