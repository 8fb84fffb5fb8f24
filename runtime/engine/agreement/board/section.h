// SPDX-License-Identifier: Apache-2.0
// How a section of a board lies in shared memory, and what there is of each number in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "proto/page/host_page.h"
#include "runtime/engine/agreement/board/log_entry.h"
#include "runtime/engine/agreement/board/mark_word.h"

namespace hvd::rt {

// Stands for the short lock of a board, BoardHeader::lock, where clang checks who touches what. One
// name for all boards: a thread holds one of them at most.
inline constexpr ThreadRole kBoardLock{};

// A set of local ranks.
struct RankSet {
  uint64_t words[kMaxLocalRanks / 64];
  void Add(int rank) { words[rank / 64] |= 1ull << (rank % 64); }
  bool Has(int rank) const { return (words[rank / 64] >> (rank % 64)) & 1; }
};

struct BoardEntry {
  static constexpr uint32_t kNameKept = 192;

  alignas(64) std::atomic<uint64_t> word;     // a MarkWord
  std::atomic<uint64_t> last_log_end;         // log position after its last run
  uint32_t next ABSL_GUARDED_BY(kBoardLock);  // in its bucket
  uint32_t bucket ABSL_GUARDED_BY(kBoardLock);
  // These fields are its name's. They are written under the lock, and not while anybody has marked
  // the entry: whoever has marked it, or has claimed its completion, reads them without the lock.
  uint64_t hash_b;  // second hash of the whole name: stands for what exceeds kNameKept
  uint64_t tenant;  // which name this is, of all ever given
  uint32_t name_length;
  bool kept ABSL_GUARDED_BY(kBoardLock);  // its name's for good
  // The requests of ranks that changed theirs: written under the lock; whoever claims the
  // completion owns them until the entry is in the log.
  int32_t proposed_rank, other_rank;  // local
  bool mismatch;                      // `other` is set
  RankSet changed;
  RankSet neutral;    // ranks that have joined
  uint64_t claimed;   // the complete MarkWord
  uint32_t next_out;  // in the outbox, what was pushed before
  // The last run without an error; a rank may rely on it until it marks again.
  bool registered;
  Signature agreed;
  Signature proposed, other;
  char name[kNameKept];
};

// The values that one rank marked, for the ranks that need them. There are two a number and rank: a
// rank may mark the next run while another still reads this one, but not the one after.
struct MarkedValues {
  int64_t rows;
  HostBuffers buffers;
};

struct alignas(64) LogRecord {
  std::atomic<uint64_t> published;  // its place in the log, counted from one
  uint32_t number;
  uint8_t run;
  bool has_error, has_rows, has_buffers, is_join;
  int32_t contributors;
  uint32_t direct_number;
  int64_t result;
  uint64_t bytes;
};

struct BoardShape {
  int local_size = 1;
  int world_size = 1;
  uint32_t numbers = 0;  // at first; a power of two
};

// A piece of a board's memory: some numbers with all that belongs to them, and a ring for the log
// as long as there are numbers with it.
struct BoardSection {
  static constexpr size_t kTextBytes = 1536;

  // Returns the bytes of a board's section `k`, from zero on.
  static size_t Bytes(const BoardShape& shape, int k);
  // Returns that section, which lies at `at`.
  static BoardSection At(std::byte* at, const BoardShape& shape, int k);

  uint32_t first = 1, count = 0;  // numbers
  uint32_t* buckets = nullptr;
  BoardEntry* entries = nullptr;
  std::atomic<uint8_t>* outstanding = nullptr;
  MarkedValues* marks = nullptr;
  LogRecord* log = nullptr;
  std::atomic<uint64_t>* batch_ends = nullptr;
  int64_t* rows = nullptr;
  char* text = nullptr;
  std::shared_ptr<std::byte> mapped;  // but the first's
};

}  // namespace hvd::rt
