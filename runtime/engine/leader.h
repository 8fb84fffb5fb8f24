// The one rank of a host that speaks for it in a job of several hosts (local rank 0): carries
// completed entries from the host's outbox to the root and the root's decisions into the host's
// log. The root (rank 0) is the leader of its own host too, and holds the Negotiator.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "hostfile/topology.h"
#include "runtime/engine/board.h"
#include "runtime/engine/frame_channel.h"
#include "runtime/engine/negotiator.h"

namespace hvd {

inline constexpr uint16_t kAgreementChannel = 1;

// What a leader is made of; all borrowed, all of the same epoch.
struct LeaderParts {
  const Topology* topology = nullptr;
  int host = 0;
  Board* board = nullptr;
  Transport* transport = nullptr;
};

// Threads: whoever runs the engine, one at a time.
class Leader {
 public:
  explicit Leader(const LeaderParts& parts);

  // Carries everything that can be carried now. True if something was. The caller rings the host's
  // bell then.
  absl::StatusOr<bool> Step();
  // True while a message of ours may still be inside the transport.
  absl::StatusOr<bool> HasUnsent();
  // At the end of the epoch: a leader tells the root that it has read the last decision; the root
  // has heard all.
  absl::Status SayBye();
  // The epoch is broken here: tells the others, as far as the transport still carries. Waits for
  // nothing.
  void SpreadAbort(std::string_view cause);
  bool HeardAllByes() const { return byes_ == static_cast<int>(channels_.size()); }
  bool is_root() const { return parts_.host == 0; }

 private:
  absl::StatusOr<bool> StepOutbox();
  absl::StatusOr<bool> StepChannel(int host, FrameChannel* channel);
  absl::Status OnReport(int host, const OutboxEntry& report);
  absl::Status OnLeft(int host, int rank);
  absl::Status OnDecision(const LogEntry& entry);
  absl::Status OnMessage(int host, const std::string& bytes);

  const LeaderParts parts_;
  Negotiator negotiator_;  // used at the root only
  // The root: one a foreign host, in host order (index host - 1). Others: one, to the root.
  std::vector<std::unique_ptr<FrameChannel>> channels_;
  int byes_ = 0;
  bool abort_spread_ = false;
};

}  // namespace hvd
