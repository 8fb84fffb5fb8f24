// SPDX-License-Identifier: Apache-2.0
// Where a board lies and who looks at it, for all of its parts: its memory as far as this process
// has mapped it, its lock, its growth, and the end of the epoch when something of it is broken.
#pragma once

#include <exception>
#include <functional>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/agreement/board/memory.h"
#include "runtime/engine/agreement/board/shared_lock.h"

namespace hvd::rt {

struct BoardPlace {
  HostPage* page = nullptr;
  const int* event_fds = nullptr;  // borrowed; null in a job of one host
  void* memory = nullptr;          // Board::Bytes(); zeroed at first
  int local_rank = 0;
  int local_size = 1;
  // By local rank: the rank in the set. Borrowed; empty: the same.
  absl::Span<const int> ranks_here = {};
  int world_size = 1;
  int host = 0;
  bool several_hosts = false;
  const int* global_ranks = nullptr;  // by rank of a process set: the job's; null: the same
  // Gives a name a direct number, where all ranks have used it; 0: there is none left.
  std::function<uint32_t(std::string_view)> bind = nullptr;
  SharedSpace* space = nullptr;  // what it grows into; null: it does not
  // Counts of names, the same on all ranks: the numbers at first, a power of two, and how many may
  // be outstanding at once (HVD_MAX_PENDING).
  uint32_t numbers = 8192;
  uint32_t most_pending = 1u << 20;
  int32_t set = 0;  // the process set, as users know it
};

// The results of a search for a number when there is none. Numbers start at 1, so zeroed memory is
// an empty board.
inline constexpr uint32_t kNoNumber = 0;             // the board must grow
inline constexpr uint32_t kNoRoomLeft = UINT32_MAX;  // and may not
inline bool IsNumber(uint32_t found) { return found != kNoNumber && found != kNoRoomLeft; }

// Threads: any.
class BoardRoom {
 public:
  explicit BoardRoom(const BoardPlace& place)
      : place_(place),
        memory_(place.memory, {place.local_size, place.world_size, place.numbers}, place.space) {}
  BoardRoom(const BoardRoom&) = delete;
  BoardRoom& operator=(const BoardRoom&) = delete;

  const BoardPlace& place() const { return place_; }
  const BoardMemory& memory() const { return memory_; }
  BoardHeader& header() const { return memory_.header(); }
  void GiveGrown() { memory_.GiveGrown(); }

  // Makes sure that this thread can look at every number and every place in the log that it can
  // have heard of. False: it cannot, and the epoch has ended.
  bool Follow() const { return memory_.IsCurrent() || FollowNew(); }
  // For who has a place in the section's ring: others will look for it there.
  bool FollowLog(int section) const;
  // Calls `attempt` under the lock, and again with more numbers while it finds none. Others wait
  // for what finds none at last: then the epoch ends.
  using Attempt = absl::FunctionRef<absl::StatusOr<uint32_t>()>;
  absl::StatusOr<uint32_t> WithRoom(std::string_view name, Attempt attempt) const;

  // As messages name it: ranks here are those of a process set.
  int GlobalRank(int rank) const {
    return place_.global_ranks != nullptr ? place_.global_ranks[rank] : rank;
  }
  int RankHere(int local_rank) const {
    return GlobalRank(place_.ranks_here.empty() ? local_rank : place_.ranks_here[local_rank]);
  }
  // All ranks of the host: the bell is not the set's.
  void RingHost() const {
    Ring(&place_.page->bell, place_.event_fds, static_cast<int>(place_.page->local_size));
  }

  // Why the epoch has ended.
  absl::Status Aborted() const;
  // As Board's. AbortLeft: under the lock, or after the epoch is broken anyway.
  absl::Status Abort(const AbortCause& cause) const;
  void AbortThrown(const std::exception& error, std::string_view name) const;
  absl::Status AbortLeft(int left_rank, std::string_view waiting_for) const;

 private:
  absl::Status Grow() const;
  bool FollowNew() const;
  absl::Status EndFull(std::string_view name) const;
  absl::Status EndWithoutMemory(const absl::Status& why) const;

  const BoardPlace place_;
  mutable BoardMemory memory_;  // what is mapped of it
};

// Holds the board's lock for a scope: some hundred nanoseconds, and never across a system call. A
// holder that is killed traps nobody: whoever spins finds the epoch aborted, and must not go on.
//
// Whoever has it finds every number mapped; for that it is given up again where the board has grown
// meanwhile: mapping takes a system call.
class ABSL_SCOPED_LOCKABLE BoardLock {
 public:
  explicit BoardLock(const BoardRoom& room)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(kBoardLock) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (room.Follow()) {
      lock_.Take(&room.header().lock, room.place().page);
      if (!lock_.held() || room.memory().IsCurrent()) return;
      lock_.Release();
    }
  }
  ~BoardLock() ABSL_UNLOCK_FUNCTION() = default;
  bool held() const { return lock_.held(); }  // false: the epoch is aborted

 private:
  SharedLock lock_;
};

}  // namespace hvd::rt
