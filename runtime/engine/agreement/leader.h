// SPDX-License-Identifier: Apache-2.0
// The one rank of a host that speaks for it in a job of several hosts (local rank 0): carries
// LeaderCore's messages between its host and its parent and children in the tree.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "hostfile/topology.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/agreement/frame_channel.h"
#include "runtime/engine/agreement/leader_core.h"
#include "runtime/engine/request/engine_lock.h"

namespace hvd::rt {

inline constexpr uint16_t kAgreementChannel = kAgreementMessages;

// The parts of a leader; all borrowed, all of the same epoch.
struct LeaderParts {
  const Topology* topology = nullptr;
  int host = 0;
  Board* board = nullptr;
  Transport* transport = nullptr;
  uint16_t channel = kAgreementChannel;
  uint64_t generation = 0;  // of those that use the channel in this epoch, one after the other
};

// Belongs to the executor of its rank's engine.
class Leader {
 public:
  explicit Leader(const LeaderParts& parts);

  // Carries everything that can be carried now. True if the host's log has grown: the caller rings
  // the host's bell then.
  absl::StatusOr<bool> Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // True while a message of ours may still be inside the transport, or is to come.
  absl::StatusOr<bool> HasUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // At the end of the epoch: this host has read the last decision. The leaders below have said so
  // when HeardAllByes; the others' transports may go then.
  void SayBye() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { core_.SayBye(); }
  bool HeardAllByes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return core_.HeardAllByes();
  }
  // The epoch is broken here: tells the others, as far as the transport still carries. Waits for
  // nothing.
  void SpreadAbort(const AbortCause& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  bool is_root() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { return core_.is_root(); }

 private:
  struct Neighbour {
    int host = 0;
    FrameChannel channel;
  };
  absl::Status Hear(Neighbour* neighbour) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status SendDown(const FrameChannel::Message& bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const LeaderParts parts_;
  LeaderCore core_ ABSL_GUARDED_BY(kExecutor);
  std::vector<std::unique_ptr<Neighbour>> neighbours_
      ABSL_GUARDED_BY(kExecutor);  // the parent, if any, first
  bool abort_spread_ ABSL_GUARDED_BY(kExecutor) = false;
};

}  // namespace hvd::rt
