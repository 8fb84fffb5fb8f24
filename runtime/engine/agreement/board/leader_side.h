// SPDX-License-Identifier: Apache-2.0
// A board as its host's leader uses it, in a job of several hosts: what has completed on this host
// goes out, and what the root has decided comes into the log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/engine/agreement/board/completion.h"
#include "runtime/engine/agreement/board/names.h"
#include "runtime/engine/request/engine_lock.h"

namespace hvd::rt {

// A completed entry on its way to the leader.
struct OutboxEntry {
  uint32_t number = 0;
  uint64_t tenant = 0;  // tells the names apart that have had this number
  Report report;
  bool is_left = false;                 // instead of the above: `left_rank` has left
  int left_rank = 0;                    // global
  std::vector<std::string> left_names;  // what it has submitted and not seen done
};

// Threads: one of the leader's rank.
class BoardLeaderSide {
 public:
  struct Parts {
    const BoardRoom* room;
    BoardNames* names;
    BoardLog* log;
    BoardOutbox* outbox;
    const BoardCompletion* completion;
  };
  explicit BoardLeaderSide(const Parts& parts)
      : room_(*parts.room), memory_(parts.room->memory()), parts_(parts) {}

  bool HasOutbox() const { return !parts_.outbox->IsEmpty(); }
  // Takes what completed.
  std::optional<OutboxEntry> TakeOutbox() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Appends a batch that the root decided.
  void Append(absl::Span<const LogEntry> batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // A number for an entry that the others decide while all ranks of this host have joined. None
  // while a rank here is too far behind: the leader is rung when it has advanced.
  absl::StatusOr<std::optional<uint32_t>> Adopt(std::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Aborts the epoch: `left_rank` (global) can never answer `waiting_for`. Returns the cause.
  absl::Status AbortLeft(int left_rank, std::string_view waiting_for) const {
    return room_.AbortLeft(left_rank, waiting_for);
  }
  // The numbers that there are by now.
  uint32_t numbers() const { return memory_.numbers(); }

 private:
  OutboxEntry ReadComplete(uint32_t number) const;
  OutboxEntry ReadLeft(int local_rank) const;
  absl::StatusOr<bool> ClaimNeutral(uint32_t number, std::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);

  const BoardRoom& room_;
  const BoardMemory& memory_;  // the room's
  const Parts parts_;
};

}  // namespace hvd::rt
