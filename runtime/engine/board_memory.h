// How a board lies in the epoch's shared memory. Zeroed memory is an empty board. Pages that nobody
// uses are never touched: the memory is sparse.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proto/host_page.h"
#include "runtime/engine/mark_word.h"
#include "runtime/engine/request.h"

namespace hvd {

// Where one of the host's ranks has a tensor: offsets in its arena.
struct HostBuffers {
  int64_t input_at = -1, output_at = -1;
};

// A set of local ranks.
struct RankSet {
  uint64_t words[kMaxLocalRanks / 64];
  void Add(int rank) { words[rank / 64] |= 1ull << (rank % 64); }
  bool Has(int rank) const { return (words[rank / 64] >> (rank % 64)) & 1; }
};

struct BoardHeader {
  // Guards the names (what an entry is called, the buckets) and what the comments say.
  alignas(64) std::atomic<uint32_t> lock;
  uint32_t used;           // entries ever taken, 1..used
  uint32_t clock_hand;     // where the search for an idle entry goes on
  uint32_t kept;           // entries that stay their names'
  uint32_t joined_count;   // ranks that have joined in this round, and which; under the lock
  int32_t last_joined;     // local rank
  uint32_t join_number;    // the join's entry
  uint64_t tenants;        // names ever given a number
  uint64_t join_position;  // the log's end when the last rank joined, and owed nothing more
  uint32_t owed;           // by those who have joined: Board::Join
  RankSet joined;
  RankSet left;                                  // under the lock
  alignas(64) std::atomic<uint32_t> left_count;  // of `left`; every mark looks at it
  std::atomic<uint32_t> room_wanted;             // the leader waits for a rank to advance
  alignas(64) std::atomic<uint64_t> log_end;     // entries appended
  std::atomic<uint64_t> appended_bytes;          // of all tensors ever appended
  std::atomic<uint64_t> closed_bytes;            // of those that batches hold
  alignas(64) std::atomic<uint64_t> outbox_end;  // words pushed
};

struct BoardEntry {
  static constexpr uint32_t kNameKept = 192;

  alignas(64) std::atomic<uint64_t> word;  // a MarkWord
  std::atomic<uint64_t> last_log_end;      // log position after its last run
  // Under the header's lock.
  uint32_t next;  // in its bucket
  uint32_t bucket;
  uint64_t hash_b;  // second hash of the whole name: stands for what exceeds kNameKept
  uint64_t tenant;  // which name this is, of all ever given
  uint32_t name_length;
  bool kept;  // its name's for good
  // What those who changed their request ask for: written under the lock; whoever claims the
  // completion owns it until the entry is in the log.
  int32_t proposed_rank, other_rank;  // local
  bool mismatch;                      // `other` is set
  RankSet changed;
  RankSet neutral;   // ranks that have joined
  uint64_t claimed;  // the complete MarkWord
  // What the last run without an error was; a rank may rely on it until it marks again.
  bool registered;
  Signature agreed;
  Signature proposed, other;
  char name[kNameKept];
};

// What one rank marked, for those who need it. There are two a number and rank: a rank may mark the
// next run while another still reads this one, but not the one after.
struct MarkSlot {
  int64_t rows;
  HostBuffers buffers;
};

struct alignas(64) LogSlot {
  std::atomic<uint64_t> published;  // its place in the log, counted from one
  uint32_t number;
  uint8_t run;
  bool has_error, has_rows, has_buffers, is_join;
  int32_t contributors;
  uint32_t direct_number;
  int64_t result;
  uint64_t bytes;
};

struct alignas(64) BoardPosition {
  std::atomic<uint64_t> executed;  // log entries
};

struct BoardShape {
  int local_size = 1;
  int world_size = 1;
  uint32_t entries = 0;  // a power of two
};

// Addresses in a board's memory.
class BoardMemory {
 public:
  static constexpr size_t kTextBytes = 1536;

  static size_t Bytes(const BoardShape& shape);
  BoardMemory(void* memory, const BoardShape& shape);

  BoardHeader& header() const { return *header_; }
  BoardEntry& entry(uint32_t number) const { return entries_[number]; }
  uint32_t& bucket(uint64_t hash) const { return buckets_[hash & (2 * shape_.entries - 1)]; }
  BoardPosition& position(int local_rank) const { return positions_[local_rank]; }
  // The rank has marked it and not executed it.
  std::atomic<uint8_t>& outstanding(int local_rank, uint32_t number) const {
    return outstanding_[static_cast<size_t>(local_rank) * (shape_.entries + 1) + number];
  }
  MarkSlot& mark(uint32_t number, int run, int local_rank) const {
    return marks_[(static_cast<size_t>(number) * 2 + run) * shape_.local_size + local_rank];
  }
  LogSlot& slot(uint64_t seq) const { return log_[seq & (shape_.entries - 1)]; }
  // Twice as many as entries: a rank that executes batch b still needs the end of b - 1.
  std::atomic<uint64_t>& batch_end(uint64_t batch) const {
    return batch_ends_[batch & (2 * shape_.entries - 1)];
  }
  // Of a number's last run.
  int64_t* rows(uint32_t number) const {
    return rows_ + static_cast<size_t>(number) * shape_.world_size;
  }
  char* text(uint32_t number) const { return text_ + number * kTextBytes; }
  // Each number is in flight once at most, and each local rank leaves once.
  std::atomic<uint64_t>& outbox(uint64_t at) const {
    return outbox_[at % (shape_.entries + shape_.local_size)];
  }
  const BoardShape& shape() const { return shape_; }

 private:
  template <class Take>
  void Place(Take take);

  BoardShape shape_;
  BoardHeader* header_ = nullptr;
  BoardPosition* positions_ = nullptr;
  uint32_t* buckets_ = nullptr;
  BoardEntry* entries_ = nullptr;
  std::atomic<uint8_t>* outstanding_ = nullptr;
  MarkSlot* marks_ = nullptr;
  LogSlot* log_ = nullptr;
  std::atomic<uint64_t>* batch_ends_ = nullptr;
  int64_t* rows_ = nullptr;
  char* text_ = nullptr;
  std::atomic<uint64_t>* outbox_ = nullptr;
};

}  // namespace hvd
