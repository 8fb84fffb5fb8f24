// SPDX-License-Identifier: Apache-2.0
// What a rank is started with, both sides: its pipes, its door to link B and its order for the
// shim. Made here, and given to those who start, relay and link it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "daemon/job/host_job.h"

namespace hvd::daemon {

struct Pipe {
  Descriptor read_end, write_end;
};

struct RankOutfit {
  Pipe in;  // without a write end where it is fed nothing
  Pipe out, err;
  Descriptor door_here, door_there;
  std::string token;  // by which a process shows that it may speak for the rank
  Descriptor order;
};

// `way_back`: the path by which a worker without its door finds hvdd. ResourceExhausted: says what
// cannot be had.
absl::StatusOr<RankOutfit> OutfitFor(const v1::Seat& seat, const HostJob& job,
                                     const std::string& way_back);

}  // namespace hvd::daemon
