// SPDX-License-Identifier: Apache-2.0
// A rank of a launched job meets all others: they exchange addresses and arenas, compare their
// terms, and are connected when it is over.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/world/join_options.h"
#include "runtime/engine/world/set_seat.h"
#include "runtime/session/host_arenas.h"
#include "runtime/session/session.h"
#include "runtime/transport/waiter.h"

namespace hvd::rt {

// All is borrowed.
struct MeetingPlace {
  Session* session = nullptr;
  const EpochGrant* grant = nullptr;
  const SetSeat* seat = nullptr;
  Waiter* waiter = nullptr;  // hears of the transport
};

// Makes the transport, too, in a job of several hosts: `transport` keeps it whatever is returned.
// FailedPrecondition, with the same words on all ranks, when their `terms` differ.
absl::StatusOr<std::unique_ptr<HostArenas>> MeetOthers(const MeetingPlace& place,
                                                       const JoinOptions& options,
                                                       std::unique_ptr<Transport>* transport);

}  // namespace hvd::rt
