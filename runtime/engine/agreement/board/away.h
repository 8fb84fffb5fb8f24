// SPDX-License-Identifier: Apache-2.0
// The ranks of a host that are away. A rank that has joined is ready for whatever the others ask
// for with neutral values; a rank that has left asks for nothing more. This rank owes the entries
// that it had submitted before and may still have to mark.
//
// A rank that has joined marks every entry that it has not asked for itself, now and whenever it
// has executed one; whoever makes a new entry marks it for the ranks that have joined. The others'
// marks therefore need not know of joins. When all have joined these marks are taken away again
// (BoardLog), before any rank can submit.
#pragma once

#include <atomic>
#include <string_view>
#include <unordered_map>

#include "absl/types/span.h"
#include "runtime/engine/agreement/board/completion.h"
#include "runtime/engine/agreement/board/names.h"

namespace hvd::rt {

// Threads: Advance: whoever executes. The rest: whoever submits; the two may meet.
class BoardAway {
 public:
  BoardAway(const BoardRoom* room, const BoardNames* names, BoardCompletion* completion,
            BoardOutbox* outbox);

  // Whether this rank is away, and whether it has joined.
  bool is_away() const {
    return joined_.load(std::memory_order_relaxed) || left_.load(std::memory_order_relaxed);
  }
  bool has_joined() const { return joined_.load(std::memory_order_relaxed); }

  // Around the mark of the join, whose number this is.
  void BeginJoin(uint32_t number, absl::Span<const std::string_view> owed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  void EndJoin(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);

  bool Owes(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  // This rank has marked it, while it had joined or not.
  void HasMarked(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  // As Board's.
  void GiveUp(std::string_view name);

  // As Board's.
  absl::Status NoteLeft(absl::Span<const std::string_view> owed);
  // After a mark, when some rank has left: the epoch ends where that one was to answer it. `run` is
  // the entry's when this rank marked it.
  absl::Status CheckLeft(uint32_t number, int run, std::string_view name);

  // This rank has executed the batch. Does nothing for a rank that is not away.
  void Advance(BoardLog::Range batch);

 private:
  bool Settle(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  void OweLess(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  bool MarkNeutral(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  bool FinishJoin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  absl::Status EndIfAwaited(uint32_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  void AdvanceJoined(BoardLog::Range batch);
  void AdvanceLeft(BoardLog::Range batch);

  const BoardRoom& room_;
  const BoardMemory& memory_;  // the room's
  const BoardNames& names_;
  BoardCompletion& completion_;
  BoardOutbox& outbox_;
  const int local_rank_, local_size_;
  std::atomic<bool> joined_{false}, left_{false};
  // How often this rank owes each number, by its latest join or by its leave.
  std::unordered_map<uint32_t, int> owed_ ABSL_GUARDED_BY(kBoardLock);
  // Log entries that this rank had executed when it joined.
  uint64_t joined_at_ ABSL_GUARDED_BY(kBoardLock) = 0;
};

}  // namespace hvd::rt
