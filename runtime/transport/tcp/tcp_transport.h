// SPDX-License-Identifier: Apache-2.0
// Messages between hosts over TCP, for hosts without RDMA: several connections a pair of ranks,
// each proven by the epoch's secret on both sides before anything else is read (handshake.h). The
// traffic is not encrypted, and not sealed: who can change what is on the wire can change tensors.
//
// One mutex a transport; no thread. Destroying it waits for nobody.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/transport/transport.h"

namespace hvd::rt {

struct TcpOptions {
  std::string secret;  // the epoch's, 32 bytes
  int rank = 0;        // of the job
  int size = 1;        // of the job
  // "eth0,eth1": the user's choice; empty: all are offered (net_devices.h).
  std::string net_devices = {};
  // The ends of the remote shell's connection that brought this process, in figures: this host's
  // and the other one's. Empty: there is none.
  std::string reached_at = {}, reached_from = {};
  // How long no address of a peer may answer before it counts as unreachable.
  std::chrono::milliseconds connect_limit{30000};
};

// Requests must be destroyed before the transport. The higher rank of a pair connects, when it
// first sends to the lower one or receives from it.
absl::StatusOr<std::unique_ptr<Transport>> MakeTcpTransport(const TcpOptions& options);

}  // namespace hvd::rt
