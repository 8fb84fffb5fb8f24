// SPDX-License-Identifier: Apache-2.0
// Messages between hosts over UCX (TCP, RDMA where there is some). One UCX worker a rank and epoch;
// tag matching; endpoints without error handling, since that would cost UCX 1.13 its fast paths:
// the daemons detect failures, and an epoch that ends throws the worker away.
//
// Never uses shared memory: ranks of one host have better ways, and network namespaces look like
// one host to UCX.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/transport/transport.h"

namespace hvd::rt {

struct UcxOptions {
  uint64_t token = 0;  // the epoch's: what other epochs and jobs send is never matched
  int rank = 0;        // of the job
  int size = 1;        // of the job; at most 65536
  std::string net_devices =
      {};                      // "eth0,mlx5_0:1": the user's choice; empty: chosen (net_devices.h)
  std::string tls = {};        // the user's choice; empty: tcp, and RDMA where a port is active
  std::string log_level = {};  // of UCX's own messages; empty: only fatal ones
};

// Requests must be destroyed before the transport. Destroying it waits for nobody: a rank leaves
// only after a barrier that shows that nobody needs its messages any more, or when the epoch is
// broken. Channels are below 64.
absl::StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(const UcxOptions& options);

// "1.13.1", or empty where UCX is not installed.
std::string UcxVersion();

}  // namespace hvd::rt
