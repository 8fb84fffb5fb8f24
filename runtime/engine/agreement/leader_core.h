// SPDX-License-Identifier: Apache-2.0
// The decisions of a host's leader: it merges what its host and the hosts below it in the tree ask
// for, passes it up, and takes the root's batches into its board and down. Messages in, messages
// out: it sends nothing itself and waits for nothing, so that a simulator runs the same code.
//
// The root (host 0) decides what all sources (leader_sources.h) have reported.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "runtime/engine/agreement/agreement_message.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/agreement/leader_sources.h"
#include "runtime/engine/agreement/left_ranks.h"
#include "runtime/engine/agreement/retired_ids.h"
#include "runtime/engine/agreement/tensor_table.h"

namespace hvd::rt {

struct LeaderCoreParts {
  const Topology* topology = nullptr;  // borrowed
  int host = 0;
  Board* board = nullptr;  // borrowed: this host's leader's
  int fan_out = LeaderTree::kFanOut;
  uint32_t most_ids = 0;   // how many tensors the root remembers; 0: as many as its board numbers
  uint64_t ids_given = 0;  // before the first: tests begin late
};

class LeaderCore {
 public:
  // The outcome of a step, with the messages to send after it.
  struct Outcome {
    bool appended = false;  // this host's log has grown
    std::optional<AgreementMessage> up;
    std::vector<AgreementMessage> down;  // to every child: one a batch
  };

  explicit LeaderCore(const LeaderCoreParts& parts);

  // A message of the parent or of a child. An error (Aborted, or Internal for a message that makes
  // no sense) ends the epoch.
  absl::Status OnMessage(int from_host, const AgreementMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Takes what has completed on the board, and closes: the root a batch of all that is ready, the
  // others one message of all that they have to report.
  absl::StatusOr<Outcome> Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // This host's ranks want nothing more. When all below have said so too, a step says it upwards.
  void SayBye() { wants_bye_ = true; }
  bool HeardAllByes() const { return byes_ == static_cast<int>(children().size()); }
  bool owes_bye() const { return wants_bye_ && !said_bye_ && !is_root(); }

  bool is_root() const { return parts_.host == 0; }
  int parent() const { return LeaderTree::Parent(parts_.host, parts_.fan_out); }
  const std::vector<int>& children() const { return sources_.children(); }

  size_t known_ids() const { return tensors_.ids(); }

 private:
  struct Held {
    LogEntry entry;
    std::string name;  // not on the board yet: it has to be adopted
  };

  // Up: what is asked for.
  absl::Status FromBelow(int source, const AgreementMessage& message);
  absl::Status TakeBoard() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status OnReport(int source, LeaderTensor* tensor, UpReport report);
  void Merge(LeaderTensor* tensor, UpReport* report);
  void OnJoined(int source);
  absl::Status OnLeft(int source, const LeftNote& left);
  absl::Status CheckLeft(const LeaderTensor& tensor) const;
  void FinishIfAll(LeaderTensor* tensor);
  void ReportUp(LeaderTensor* tensor);
  int SourceRank(int source) const;

  // Down: what is decided.
  absl::Status FromAbove(const AgreementMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status CloseBatch();
  Decision DecideTensor(LeaderTensor* tensor);
  absl::Status Apply(const Decision& decision);
  absl::Status AppendHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void Retire(const std::vector<uint64_t>& ids);
  void SayRetired();
  size_t most_ids() const {
    return parts_.most_ids != 0 ? parts_.most_ids : parts_.board->leader_side().numbers();
  }

  const LeaderCoreParts parts_;
  const LeaderSources sources_;
  TensorTable tensors_;
  uint32_t joined_ = 0;  // by source: all its ranks have joined
  LeftRanks lefts_;
  AgreementMessage up_;
  std::vector<AgreementMessage> down_;

  std::vector<LeaderTensor*> ready_;    // the root's: what the next batch holds
  std::deque<std::vector<Held>> held_;  // batches that the board has no room for yet
  bool appended_ = false;

  uint64_t last_id_ = 0;  // the root's
  uint64_t batches_ = 0;  // that the root has closed
  uint64_t decided_ = 0;  // tensors in them
  RetiredIds retired_;

  int byes_ = 0;
  bool wants_bye_ = false, said_bye_ = false;
};

}  // namespace hvd::rt
