// SPDX-License-Identifier: Apache-2.0
// The readiness board and the schedule log of one host, in the epoch's shared memory. Every local
// rank marks what it has submitted; whoever completes an entry reports it, and agreed entries are
// appended to the log, a sequence of batches that every rank executes in order. In a job of one
// host the completer appends to the open batch, and whoever waits closes it; with several hosts
// completed entries go to the host's outbox and its leader appends the batches that the root
// decides.
//
// This is the face of it; the room board/ holds its parts, one duty each (its README). Marking what
// was agreed before takes no lock. A short lock guards names, changed requests, joining and
// leaving.
//
// The board has as many numbers as names need them, up to a limit that ends the epoch: others wait
// for what would not be marked.
//
// Threads: by the annotations. Functions that mark are called under the engine's lock, functions
// that take batches by its executor, which in the leader's rank is the leader, too; the two may
// meet. The rest: any thread. Ranks (processes) never need to be kept apart.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/agreement/board/away.h"
#include "runtime/engine/agreement/board/leader_side.h"
#include "runtime/engine/agreement/board/log.h"
#include "runtime/engine/agreement/board/marks.h"
#include "runtime/engine/agreement/board/room.h"
#include "runtime/engine/request/engine_lock.h"

namespace hvd::rt {

class Board {
 public:
  static constexpr uint32_t kNumbers = 8192;          // at first
  static constexpr uint32_t kMostPending = 1u << 24;  // whatever HVD_MAX_PENDING says
  static constexpr uint32_t kMostNumbers = 1u << 25;  // with those that names keep

  static size_t Bytes(int local_size, int world_size, uint32_t numbers = kNumbers);

  explicit Board(const BoardPlace& place);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // Says that this rank has submitted `name`. Returns the entry's number. REQUIRES: this rank has
  // executed its last request of that name. FailedPrecondition between Join and its execution,
  // unless it owes that mark; Aborted when the epoch is or becomes broken (a peer has left and can
  // never answer, or there are too many names).
  absl::StatusOr<uint32_t> Mark(std::string_view name, const MarkValue& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Called with each number before this rank marks it as a name that it does not remember. An
  // exception that it throws comes out of Mark or Join, and nothing is marked.
  void set_before_mark(std::function<void(uint32_t)> call) {
    marks_.set_before_mark(std::move(call));
  }
  // From now on there is room for this name, whatever else is outstanding. Aborted as Mark.
  absl::Status Keep(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return names_.Keep(name);
  }
  // … no more. REQUIRES: no rank has it pending.
  void Release(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    names_.Release(name);
  }

  // This rank is ready for whatever the others ask for, with neutral values, until all have joined:
  // then an entry of kind kJoin comes through the log, with the number returned. Entries come
  // meanwhile that this rank has not marked; their signature says what to take part in.
  //
  // `owed`: what this rank has submitted before and may still have to mark, each name as often. It
  // is not ready for these until it has marked them or given them up, and the join waits for that.
  // REQUIRES: Keep of each.
  absl::StatusOr<uint32_t> Join(absl::Span<const std::string_view> owed = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // This rank has joined, or left, and marks `name` once less than it owes.
  void GiveUp(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    away_.GiveUp(name);
  }

  // The next batch for this rank to execute, if one has been closed. Every rank sees the same
  // batches.
  bool HasNext() const { return log_.HasNext(); }
  std::vector<LogEntry> NextBatch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return log_.NextBatch();
  }
  // This rank has executed what NextBatch() gave. Only then may it mark those names again.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // Agreed entries that no batch holds yet, and the bytes of their tensors. Only in a job of one
  // host: the root's batches come closed.
  bool HasOpen() const { return !several_hosts() && log_.HasOpen(); }
  size_t open_bytes() const { return log_.open_bytes(); }
  // Makes a batch of them; any rank may, and when several do at once one succeeds. Nothing to do
  // when there are none.
  void Close() {
    if (!several_hosts()) log_.Close();
  }

  // What the leader of a job of several hosts does with it.
  BoardLeaderSide& leader_side() { return leader_side_; }
  // Returns the name of an entry that is taken and not appended.
  std::string Name(uint32_t number) const { return names_.Name(number); }

  // As messages name it: ranks here are those of a process set.
  int GlobalRank(int rank) const { return room_.GlobalRank(rank); }

  // This rank will submit nothing more (its kLeave has been marked). Aborts the epoch when a peer
  // on this host waits for it, now or later. With several hosts the leader passes it on.
  //
  // `owed`: what it has submitted before and may still have to mark, as in Join: whoever waits for
  // that waits for what comes.
  absl::Status NoteLeft(absl::Span<const std::string_view> owed = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return away_.NoteLeft(owed);
  }
  // Aborts the epoch, for a cause that is known; returns it.
  absl::Status Abort(const AbortCause& cause) const { return room_.Abort(cause); }
  // … what was thrown: this rank cannot do its part of `name` (empty: of anything). Needs no
  // memory.
  void AbortThrown(const std::exception& error, std::string_view name) const {
    room_.AbortThrown(error, name);
  }

  const HostPage& page() const { return *room_.place().page; }
  // No rank here uses the board any more. By one of them.
  void GiveGrown() { room_.GiveGrown(); }

  // Whether what this rank has marked is in the log, and it has not executed it yet. Any thread.
  bool IsAgreed(uint32_t number) const { return log_.IsAgreed(number); }

 private:
  bool several_hosts() const { return room_.place().several_hosts; }
  absl::StatusOr<uint32_t> MarkNew(std::string_view name, const MarkValue& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::StatusOr<uint32_t> AfterMark(BoardMarks::Marked marked, std::string_view name);
  BoardMarks::Marked MarkJoin(uint32_t number, absl::Span<const std::string_view> owed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);

  BoardRoom room_;
  BoardNames names_;
  BoardLog log_;
  BoardOutbox outbox_;
  BoardCompletion completion_;
  BoardMarks marks_;
  BoardAway away_;
  BoardLeaderSide leader_side_;
};

}  // namespace hvd::rt
