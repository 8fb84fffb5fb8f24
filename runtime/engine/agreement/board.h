// The readiness board and the schedule log of one host, in the epoch's shared memory. Every local
// rank marks what it has submitted; whoever completes an entry reports it, and agreed entries are
// appended to the log, a sequence of batches that every rank executes in order. In a job of one
// host the completer appends to the open batch, and whoever waits closes it; with several hosts
// completed entries go to the host's outbox and its leader appends the batches that the root
// decides.
//
// Marking what was agreed before is one compare-and-swap on the entry's word (MarkWord). A short
// lock guards only names, changed requests, joining and leaving. It is never held across a system
// call, and a holder that is killed traps nobody: whoever spins finds the epoch aborted.
//
// The board has as many numbers as names need them (board_memory.h), up to a limit that ends the
// epoch: others wait for what would not be marked.
//
// Threads: Mark, Keep, Join and NoteLeft of one rank are called by one thread at a time, NextBatch
// and Advance too; the two groups may meet. TakeOutbox, Append and Adopt: one thread of the
// leader's rank. The rest: any thread. Ranks (processes) never need to be kept apart.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/agreement/board_memory.h"
#include "runtime/engine/agreement/report.h"

namespace hvd {

// Where the board lies and who looks at it.
struct BoardPlace {
  HostPage* page = nullptr;
  const int* event_fds = nullptr;  // borrowed; null in a job of one host
  void* memory = nullptr;          // Board::Bytes(); zeroed at first
  int local_rank = 0;
  int local_size = 1;
  int first_rank = 0;  // global rank of local rank 0
  int world_size = 1;
  int host = 0;
  bool several_hosts = false;
  const int* global_ranks = nullptr;  // by rank of a process set: the job's; null: the same
  // Gives a name a direct number, where all ranks have used it; 0: there is none left.
  std::function<uint32_t(std::string_view)> bind = nullptr;
  SharedSpace* space = nullptr;  // what it grows into; null: it does not
  // Of names, the same on all ranks: the numbers at first, a power of two, and how many may be
  // outstanding at once (HVD_MAX_PENDING).
  uint32_t numbers = 8192;
  uint32_t most_pending = 1u << 20;
  int32_t set = 0;  // the process set, as users know it
};

// A completed entry on its way to the leader.
struct OutboxEntry {
  uint32_t number = 0;
  uint64_t tenant = 0;  // tells the names apart that have had this number
  Report report;
  bool is_left = false;                 // instead of the above: `left_rank` has left
  int left_rank = 0;                    // global
  std::vector<std::string> left_names;  // what it has submitted and not seen done
};

// What somebody waits for, for the one who looks for stalls. Ranks are global, all of this
// host.
struct OpenName {
  std::string name;
  Signature signature;  // one of the ranks'; not known of what waits elsewhere
  std::vector<int> submitted, missing;
  bool waits_elsewhere = false;  // complete here: other hosts are missing
};

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
  absl::StatusOr<uint32_t> Mark(std::string_view name, const MarkValue& value);
  // Called with each number before this rank marks it as a name that it does not remember. What it
  // throws comes out of Mark or Join, and nothing is marked.
  void set_before_mark(std::function<void(uint32_t)> call) { before_mark_ = std::move(call); }
  // From now on there is room for this name, whatever else is outstanding. Aborted as Mark.
  absl::Status Keep(std::string_view name);
  // … no more. REQUIRES: no rank has it pending.
  void Release(std::string_view name);

  // This rank is ready for whatever the others ask for, with neutral values, until all have joined:
  // then an entry of kind kJoin comes through the log, with the number returned. Entries come
  // meanwhile that this rank has not marked; their signature says what to take part in.
  //
  // `owed`: what this rank has submitted before and may still have to mark, each name as often. It
  // is not ready for these until it has marked them or given them up, and the join waits for that.
  // REQUIRES: Keep of each.
  absl::StatusOr<uint32_t> Join(absl::Span<const std::string_view> owed = {});
  // This rank has joined, or left, and marks `name` once less than it owes.
  void GiveUp(std::string_view name);

  // The next batch for this rank to execute, if one has been closed. Every rank sees the same
  // batches.
  bool HasNext() const;
  std::vector<LogEntry> NextBatch() const;
  // This rank has executed what NextBatch() gave. Only then may it mark those names again.
  void Advance();

  // Agreed entries that no batch holds yet, and the bytes of their tensors. Only in a job of one
  // host: the root's batches come closed.
  bool HasOpen() const;
  size_t open_bytes() const;
  // Makes a batch of them; any rank may, and when several do at once one succeeds. Nothing to do
  // when there are none.
  void Close();

  // The leader's side. Take what completed; append a batch that the root decided.
  bool HasOutbox() const;
  std::optional<OutboxEntry> TakeOutbox();
  std::string Name(uint32_t number) const;  // of an entry taken and not appended
  void Append(absl::Span<const LogEntry> batch);
  // A number for an entry that the others decide while all ranks of this host have joined. None
  // while a rank here is too far behind: the leader is rung when it has advanced.
  absl::StatusOr<std::optional<uint32_t>> Adopt(std::string_view name);

  // As messages name it: ranks here are those of a process set.
  int GlobalRank(int rank) const {
    return place_.global_ranks != nullptr ? place_.global_ranks[rank] : rank;
  }

  // This rank will submit nothing more (its kLeave has been marked). Aborts the epoch when a peer
  // on this host waits for it, now or later. With several hosts the leader passes it on.
  //
  // `owed`: what it has submitted before and may still have to mark, as in Join: whoever waits for
  // that waits for what comes.
  absl::Status NoteLeft(absl::Span<const std::string_view> owed = {});
  // Aborts the epoch, for a cause that is known; returns it.
  absl::Status Abort(const AbortCause& cause) const;
  // … what was thrown: this rank cannot do its part of `name` (empty: of anything). Needs no
  // memory.
  void AbortThrown(const std::exception& error, std::string_view name) const;
  // … `left_rank` (global) can never answer `waiting_for`.
  absl::Status AbortLeft(int left_rank, std::string_view waiting_for) const;

  // The numbers that there are by now.
  uint32_t numbers() const { return memory_.numbers(); }
  const HostPage& page() const { return *place_.page; }
  // No rank here uses the board any more. By one of them.
  void GiveGrown() { memory_.GiveGrown(); }

  // Whether what this rank has marked is in the log, and it has not executed it yet. Any thread.
  bool IsAgreed(uint32_t number) const;
  // What is marked by some and not complete, at most so many.
  std::vector<OpenName> Open(size_t at_most) const;

 private:
  class Lock;
  static constexpr uint32_t kLeftFlag = 0x80000000u;  // in an outbox word: the rest is a local rank
  // What this rank remembers of a number, so that a mark needs no look at the shared names, nor
  // for where things lie: they never move.
  struct Known {
    std::string name;
    BoardEntry* entry = nullptr;
    std::atomic<uint8_t>* outstanding = nullptr;  // this rank's
    uint32_t version = 0;
    bool registered = false;
    Signature agreed;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  // Names (board_names.cc); under the lock.
  uint32_t Find(std::string_view name) const;
  uint32_t Find(std::string_view name, uint64_t hash, uint64_t hash_b) const;
  // kNone: the board must grow; kFull: it may not.
  uint32_t FindOrCreate(std::string_view name);
  uint32_t TakeIdleEntry(uint32_t limit);
  bool IsIdle(const BoardEntry& entry, MarkWord word) const;
  void Unlink(uint32_t number);
  void Remember(uint32_t number, std::string_view name);
  std::string_view KeptName(const BoardEntry& entry) const;

  // Room (board_room.cc). Numbers start at 1, so zeroed memory is an empty board.
  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kFull = UINT32_MAX;
  using Attempt = absl::FunctionRef<absl::StatusOr<uint32_t>()>;
  absl::StatusOr<uint32_t> WithRoom(std::string_view name, Attempt attempt);
  absl::Status Grow();
  bool Follow() const { return memory_.IsCurrent() || FollowNew(); }
  bool FollowNew() const;
  bool FollowLog(int chunk) const;
  absl::Status EndFull(std::string_view name) const;
  absl::Status EndWithoutMemory(const absl::Status& why) const;

  // Marks (board.cc).
  bool TryMark(uint32_t number, const MarkValue& value, uint64_t counts);
  absl::StatusOr<uint32_t> MarkNew(std::string_view name, const MarkValue& value);
  uint32_t MarkLocked(std::string_view name, const MarkValue& value, int* run);
  void Propose(BoardEntry* entry, const Signature& signature);
  absl::StatusOr<uint32_t> JoinLocked(absl::Span<const std::string_view> owed, int* run);
  bool Owes(std::string_view name) const;
  bool Settle(uint32_t number);
  void OweLess(uint32_t number);
  bool MarkNeutral(uint32_t number);
  bool FinishJoin();
  absl::StatusOr<bool> ClaimNeutral(uint32_t number, std::string_view name);
  void ClearNeutral();
  absl::Status CheckLeft(uint32_t number, int run, std::string_view name);
  absl::Status EndIfAwaited(uint32_t number) const;

  // Decisions and the log (board_log.cc).
  void Complete(uint32_t number, MarkWord claimed, std::string_view wants_number = {});
  LogEntry DecideHere(uint32_t number, MarkWord claimed) const;
  Report ReadReport(uint32_t number) const;
  int RankHere(int local_rank) const { return GlobalRank(place_.first_rank + local_rank); }
  int64_t RowsOf(uint32_t number, MarkWord claimed, int local_rank) const;
  void AppendEntry(const LogEntry& entry);
  void WriteSlot(LogSlot* slot, const LogEntry& entry, MarkWord claimed);
  LogEntry ReadSlot(uint64_t seq) const;
  void PushOutbox(uint32_t word);
  uint32_t& NextOut(uint32_t word) const;
  uint64_t FindOpen() const;
  void CloseAll();
  void AdvanceJoined(uint64_t begin, uint64_t end);
  void AdvanceLeft(uint64_t begin, uint64_t end);
  // All ranks of the host: the bell is not the set's.
  void RingHost() const {
    Ring(&place_.page->bell, place_.event_fds, static_cast<int>(place_.page->local_size));
  }

  const BoardPlace place_;
  mutable BoardMemory memory_;  // what is mapped of it
  std::function<void(uint32_t)> before_mark_;
  std::unordered_map<std::string, uint32_t, NameHash, std::equal_to<>> numbers_;
  std::vector<Known> known_;  // by number
  std::atomic<bool> joined_{false}, left_{false};
  // Of the latest join, or of the leave; under the lock.
  std::unordered_map<uint32_t, int> owed_;  // by number
  uint64_t joined_at_ = 0;                  // log entries that this rank had executed
  std::atomic<uint64_t> executed_{0};       // of the log: where this rank's next batch begins
  uint32_t outbox_ = 0;                     // the leader's: taken out of the header's, oldest first
};

}  // namespace hvd
