// The readiness board and the schedule log of one host, in the epoch's shared memory. Every local
// rank marks what it has submitted; whoever completes an entry reports it, and agreed entries are
// appended to the log, a sequence of batches that every rank executes in order. In a job of one
// host the completer appends to the open batch, and whoever waits closes it; with several hosts
// completed entries go to the host's outbox and its leader appends the batches that the root
// decides.
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

// What a rank says when it submits a tensor.
struct MarkValue {
  Signature signature;
  int64_t input_at = -1, output_at = -1;  // offsets in this rank's arena; -1: not there
};

// Where one of the host's ranks has a tensor: offsets in its arena.
struct HostBuffers {
  int64_t input_at = -1, output_at = -1;
};

// An agreed entry as a rank reads it from the log.
struct LogEntry {
  uint32_t number = 0;
  std::string error;          // empty: run it
  std::vector<int64_t> rows;  // by global rank; only for kinds where they may differ
  Signature signature;        // the agreed one; an allgather's first dimension is one rank's
  // By local rank; empty unless every rank of this host has the tensor in its arena.
  std::vector<HostBuffers> host_buffers;
  int contributors = 0;  // ranks that have submitted it themselves
  int64_t result = -1;   // of a join: the last rank
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
  absl::StatusOr<uint32_t> Mark(std::string_view name, const MarkValue& value);

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
  absl::Status Append(absl::Span<const LogEntry> batch);

  // This rank will submit nothing more (its kLeave has been marked). Aborts the epoch when a peer
  // on this host waits for it. With several hosts the leader passes it on.
  absl::Status NoteLeft();
  // The leader heard that a rank of another host has left: aborts when someone here waits for it.
  absl::Status NoteLeftElsewhere(int rank);

 private:
  struct Header;
  struct Entry;
  struct LogSlot;
  struct MarkSlot;
  class Lock;

  Entry& entry(uint32_t number) const;
  MarkSlot* marks(uint32_t number, uint32_t run) const;
  LogSlot& log_slot(uint64_t seq) const;
  std::atomic<uint64_t>& batch_end(uint64_t batch) const;
  int64_t* log_rows(uint64_t seq) const;
  char* log_text(uint64_t seq) const;

  LogEntry ReadLog(uint64_t seq) const;
  uint64_t FindOpen(uint64_t* batch) const;
  absl::StatusOr<uint32_t> FindOrCreate(std::string_view name);
  uint32_t TakeIdleEntry();
  bool IsIdle(const Entry& entry) const;
  void Unlink(uint32_t number);
  void Complete(uint32_t number);
  void PushOutbox(uint32_t word);
  void AppendLocked(const LogEntry& entry);
  void CloseAt(uint64_t end);
  absl::Status AbortLeft(int left_rank, std::string_view waiting_for);

  const BoardPlace place_;
  Header* header_;
  std::byte* entries_;
  std::byte* marks_;
  std::byte* log_;
  std::byte* batch_ends_;
  std::byte* log_rows_;
  std::byte* log_text_;
  // This rank's place in the log: entries and batches executed.
  uint64_t next_ = 0, next_batch_ = 0;
};

}  // namespace hvd
