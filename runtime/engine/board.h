// The readiness board and the schedule log of one host, in the epoch's shared memory. Every local
// rank marks what it has submitted; whoever completes an entry reports it, and agreed entries are
// appended to the log, which every rank executes in order. In a job of one host the completer
// appends at once; with several hosts completed entries go to the host's outbox and its leader
// appends what the root decides.
//
// Threads and processes: every function may be called by any local rank at any time. One spin word
// guards the board; it is held for some hundred nanoseconds and never across a system call. A
// holder that is killed leaves it taken: whoever spins then finds the epoch aborted and gets the
// error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/host_page.h"
#include "runtime/engine/mismatch.h"
#include "runtime/engine/request.h"

namespace hvd {

// Where the board lies and who looks at it.
struct BoardPlace {
  HostPage* page = nullptr;
  const int* event_fds = nullptr;  // borrowed; null in a job of one host
  void* memory = nullptr;          // BoardBytes(); zeroed at first
  int local_rank = 0;
  int local_size = 1;
  int first_rank = 0;  // global rank of local rank 0
  int world_size = 1;
  bool several_hosts = false;
};

// An agreed entry as a rank reads it from the log.
struct LogEntry {
  uint32_t number = 0;
  std::string error;          // empty: run it
  std::vector<int64_t> rows;  // by global rank; only for kinds where they may differ
};

// A completed entry on its way to the leader.
struct OutboxEntry {
  uint32_t number = 0;
  std::string name;
  Asker first;
  std::optional<Asker> other;  // set on a mismatch within the host
  std::vector<int64_t> rows;   // by local rank
  bool is_left = false;        // instead of the above: `left_rank` has left
  int left_rank = 0;
};

class Board {
 public:
  static constexpr uint32_t kEntries =
      8192;  // names outstanding or remembered; also the log's length

  static size_t Bytes(int local_size, int world_size);

  explicit Board(const BoardPlace& place);

  // Says that this rank has submitted `name`. Returns the entry's number. REQUIRES: this rank has
  // executed its last request of that name. ResourceExhausted when kEntries names are outstanding;
  // Aborted when the epoch is or becomes broken (a peer has left and can never answer).
  absl::StatusOr<uint32_t> Mark(std::string_view name, const Signature& signature);

  // The next entry for this rank to execute, if it has been agreed.
  bool HasNext() const;
  LogEntry Next() const;
  // This rank has executed what Next() gave.
  void Advance();

  // The leader's side. Take what completed; append what the root decided.
  bool HasOutbox() const;
  std::optional<OutboxEntry> TakeOutbox();
  absl::Status Append(const LogEntry& entry);

  // This rank will submit nothing more (its kLeave has been marked). Aborts the epoch when a peer
  // on this host waits for it. With several hosts the leader passes it on.
  absl::Status NoteLeft();
  // The leader heard that a rank of another host has left: aborts when someone here waits for it.
  absl::Status NoteLeftElsewhere(int rank);

 private:
  struct Header;
  struct Entry;
  struct LogSlot;
  class Lock;

  Entry& entry(uint32_t number) const;
  int64_t* entry_rows(uint32_t number) const;
  LogSlot& log_slot(uint64_t seq) const;
  int64_t* log_rows(uint64_t seq) const;
  char* log_text(uint64_t seq) const;

  uint32_t* FindLink(std::string_view name, uint64_t hash) const;
  absl::StatusOr<uint32_t> FindOrCreate(std::string_view name);
  uint32_t TakeIdleEntry();
  bool IsIdle(const Entry& entry) const;
  void Unlink(uint32_t number);
  void Complete(uint32_t number);
  void PushOutbox(uint32_t word);
  void AppendLocked(const LogEntry& entry);
  absl::Status AbortLeft(int left_rank, std::string_view waiting_for);

  const BoardPlace place_;
  Header* header_;
  std::byte* entries_;
  std::byte* rows_;
  std::byte* log_;
  std::byte* log_rows_;
  std::byte* log_text_;
  uint64_t next_ = 0;  // this rank's place in the log
};

}  // namespace hvd
