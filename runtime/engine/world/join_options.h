// SPDX-License-Identifier: Apache-2.0
// What a rank brings into an epoch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/tuning/terms.h"
#include "runtime/session/host_arenas.h"
#include "runtime/transport/transport.h"

namespace hvd::rt {

// The rank that needs a transport in a job of several hosts, and the epoch that it is for.
struct TransportPlace {
  int rank = 0;
  int size = 1;
  std::string token;  // the epoch's secret
};
using TransportFactory =
    std::function<absl::StatusOr<std::unique_ptr<Transport>>(const TransportPlace&)>;

struct JoinOptions {
  // Called as soon as this process knows which rank it is, before it meets the others; its error
  // ends the join.
  std::function<absl::Status(const Topology& topology, int rank)> on_start = nullptr;
  int host_cores = 0;                         // what the host's ranks share; 0: count them
  TransportFactory make_transport = nullptr;  // called in a job of several hosts
  Arena* arena = nullptr;        // the process's, shared with the host's ranks; null: none
  std::vector<Term> terms = {};  // the library's is added
  uint32_t max_pending = BoardPlace().most_pending;  // HVD_MAX_PENDING
};

}  // namespace hvd::rt
