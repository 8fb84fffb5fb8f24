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

namespace hvd {

inline constexpr uint16_t kAgreementChannel = kAgreementMessages;

// What a leader is made of; all borrowed, all of the same epoch.
struct LeaderParts {
  const Topology* topology = nullptr;
  int host = 0;
  Board* board = nullptr;
  Transport* transport = nullptr;
  uint16_t channel = kAgreementChannel;
  uint64_t generation = 0;  // of those that use the channel in this epoch, one after the other
};

// Threads: whoever runs the engine, one at a time.
class Leader {
 public:
  explicit Leader(const LeaderParts& parts);

  // Carries everything that can be carried now. True if the host's log has grown: the caller rings
  // the host's bell then.
  absl::StatusOr<bool> Step();
  // True while a message of ours may still be inside the transport, or is to come.
  absl::StatusOr<bool> HasUnsent();
  // At the end of the epoch: this host has read the last decision. The leaders below have said so
  // when HeardAllByes; the others' transports may go then.
  void SayBye() { core_.SayBye(); }
  bool HeardAllByes() const { return core_.HeardAllByes(); }
  // The epoch is broken here: tells the others, as far as the transport still carries. Waits for
  // nothing.
  void SpreadAbort(const AbortCause& cause);
  bool is_root() const { return core_.is_root(); }

 private:
  struct Neighbour {
    int host = 0;
    FrameChannel channel;
  };
  absl::Status Hear(Neighbour* neighbour);
  absl::Status SendDown(const FrameChannel::Message& bytes);

  const LeaderParts parts_;
  LeaderCore core_;
  std::vector<std::unique_ptr<Neighbour>> neighbours_;  // the parent, if any, first
  bool abort_spread_ = false;
};

}  // namespace hvd
