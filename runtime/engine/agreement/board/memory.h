// SPDX-License-Identifier: Apache-2.0
// How a board lies in the epoch's shared memory. Zeroed memory is an empty board. Pages that nobody
// uses are never touched: the memory is sparse.
//
// It begins with room for some numbers, and grows by sections as names need them, each as large as
// all before it together: a number's section is the place of its highest bit. Sections are pieces
// of a SharedSpace. Whoever takes one publishes its place in the header; all others map it when
// they see that (Follow). Nothing ever moves, and nothing is given back before the board's end.
//
// A section has a ring for the log as long as there are numbers with it. From a section's
// publication on the log goes on in its ring; what was appended before stays in the others.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "proto/page/host_page.h"
#include "runtime/engine/agreement/board/section.h"
#include "runtime/session/shared_space.h"

namespace hvd::rt {

inline constexpr int kMostBoardSections = 24;

// The place in the log of the record that is appended next, and the section in whose ring it lies.
// One word, so that an appender learns both at once.
class LogPlace {
 public:
  static constexpr uint64_t kNextSection = 1ull << 56;

  explicit LogPlace(uint64_t bits) : bits_(bits) {}
  uint64_t seq() const { return bits_ & (kNextSection - 1); }
  int section() const { return static_cast<int>(bits_ >> 56); }

 private:
  uint64_t bits_;
};

struct BoardHeader {
  alignas(64) std::atomic<uint32_t> lock;
  uint32_t used ABSL_GUARDED_BY(kBoardLock);          // entries ever taken, 1..used
  uint32_t clock_hand ABSL_GUARDED_BY(kBoardLock);    // where the search for an idle entry goes on
  uint32_t kept ABSL_GUARDED_BY(kBoardLock);          // entries that stay their names'
  uint32_t joined_count ABSL_GUARDED_BY(kBoardLock);  // of `joined`
  int32_t last_joined;  // local rank; nobody joins again before he has read the join's end
  uint32_t join_number ABSL_GUARDED_BY(kBoardLock);  // the join's entry
  uint64_t tenants ABSL_GUARDED_BY(kBoardLock);      // names ever given a number
  // The log's end when the last rank joined, and owed nothing more.
  uint64_t join_position ABSL_GUARDED_BY(kBoardLock);
  uint32_t owed ABSL_GUARDED_BY(kBoardLock);   // by those who have joined: Board::Join
  RankSet joined ABSL_GUARDED_BY(kBoardLock);  // in this round
  RankSet left ABSL_GUARDED_BY(kBoardLock);
  alignas(64) std::atomic<uint32_t> left_count;  // of `left`; every mark looks at it
  std::atomic<uint32_t> room_wanted;             // the leader waits for a rank to advance
  std::atomic<uint32_t> grown;  // sections published, beyond the first; written under the lock
  alignas(64) std::atomic<uint64_t> log_end;  // a LogPlace
  std::atomic<uint64_t> appended_bytes;       // of all tensors ever appended
  std::atomic<uint64_t> closed_bytes;         // of those that batches hold
  alignas(64) std::atomic<uint32_t> outbox;   // what was pushed last; 0: nothing
  // By section, but the first.
  alignas(64) std::atomic<uint64_t> section_at[kMostBoardSections];
  std::atomic<uint64_t>
      log_begin[kMostBoardSections];  // 1 + the first in its ring; 0: to be written
};

struct alignas(64) BoardPosition {
  std::atomic<uint64_t> executed;  // log entries
  uint32_t next_out;               // of the rank's leave, as BoardEntry's
};

// Addresses in a board's memory. Threads: any. A number or a place in the log that another thread
// or rank has told of: Follow first.
class BoardMemory {
 public:
  static constexpr size_t kTextBytes = BoardSection::kTextBytes;

  // Returns the bytes that the board has at first.
  static size_t Bytes(const BoardShape& shape);
  // `space` is borrowed; null: it cannot grow.
  BoardMemory(void* memory, const BoardShape& shape, SharedSpace* space);

  // Whether everything is mapped that has been published.
  bool IsCurrent() const {
    return header_->grown.load(std::memory_order_acquire) ==
           mapped_.load(std::memory_order_acquire);
  }
  // Maps what is not. ResourceExhausted says size and limit.
  absl::Status Follow();
  bool MayGrow() const;
  // Twice as many numbers. Where another rank was faster, or it fails, nothing has changed.
  // `locked` calls what it is given under the board's lock, everything mapped; or not at all.
  absl::Status Grow(absl::FunctionRef<void(absl::FunctionRef<void()>)> locked);
  // Gives back what the board has grown by, once no rank here uses it any more.
  void GiveGrown();

  BoardHeader& header() const { return *header_; }
  // 1..numbers() are there.
  uint32_t numbers() const { return NumbersWith(mapped_.load(std::memory_order_acquire)); }
  BoardEntry& entry(uint32_t number) const {
    const At at = Find(number);
    return at.section.entries[at.index];
  }
  int sections() const { return static_cast<int>(mapped_.load(std::memory_order_acquire)) + 1; }
  // Returns a bucket of the names that have a number of this section.
  uint32_t& bucket(int section, uint64_t hash) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock) {
    return sections_[section].buckets[hash & (2 * sections_[section].count - 1)];
  }
  uint32_t& bucket_of(uint32_t number, uint64_t hash) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock) {
    return bucket(SectionOf(number), hash);
  }
  BoardPosition& position(int local_rank) const { return positions_[local_rank]; }
  // The rank has marked it and not executed it.
  std::atomic<uint8_t>& outstanding(int local_rank, uint32_t number) const {
    const At at = Find(number);
    return at.section.outstanding[static_cast<size_t>(local_rank) * at.section.count + at.index];
  }
  MarkedValues& marked(uint32_t number, int run, int local_rank) const {
    const At at = Find(number);
    return at.section
        .marks[(static_cast<size_t>(at.index) * 2 + run) * shape_.local_size + local_rank];
  }
  uint64_t log_end() const {
    return LogPlace(header_->log_end.load(std::memory_order_acquire)).seq();
  }
  bool HasLogBegin(int section) const {
    return section == 0 || header_->log_begin[section].load(std::memory_order_acquire) != 0;
  }
  LogRecord& record(uint64_t seq) const { return record(SectionOfLog(seq), seq); }
  LogRecord& record(int section, uint64_t seq) const {
    return sections_[section].log[seq & (NumbersWith(static_cast<uint32_t>(section)) - 1)];
  }
  // Where the batch ends that begins there, once it is closed; what is no larger than `seq` is of
  // the ring's last round. Apart from the records: who waits for it is not disturbed by who
  // appends.
  std::atomic<uint64_t>& batch_end(uint64_t seq) const {
    const int section = SectionOfLog(seq);
    return sections_[section].batch_ends[seq & (NumbersWith(static_cast<uint32_t>(section)) - 1)];
  }
  // The rows, and the text, of a number's last run.
  int64_t* rows(uint32_t number) const {
    const At at = Find(number);
    return at.section.rows + static_cast<size_t>(at.index) * shape_.world_size;
  }
  char* text(uint32_t number) const {
    const At at = Find(number);
    return at.section.text + at.index * kTextBytes;
  }

 private:
  struct At {
    const BoardSection& section;
    uint32_t index;
  };

  uint32_t NumbersWith(uint32_t grown) const { return shape_.numbers << grown; }
  int SectionOf(uint32_t number) const { return std::bit_width((number - 1) >> shift_); }
  // Few jobs have more names than there are numbers at first.
  At Find(uint32_t number) const {
    if (number <= shape_.numbers) [[likely]]
      return {sections_[0], number - 1};
    const BoardSection& section = sections_[SectionOf(number)];
    return {section, number - section.first};
  }
  int SectionOfLog(uint64_t seq) const {
    for (uint32_t k = mapped_.load(std::memory_order_acquire); k > 0; --k) {
      const uint64_t begin = header_->log_begin[k].load(std::memory_order_acquire);
      if (begin != 0 && seq >= begin - 1) return static_cast<int>(k);
    }
    return 0;
  }
  void Publish(int section, uint64_t place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);

  const BoardShape shape_;
  const int shift_;  // shape_.numbers as a power of two
  SharedSpace* const space_;
  BoardHeader* header_ = nullptr;
  BoardPosition* positions_ = nullptr;
  Mutex mapping_;                    // whoever maps sections
  std::atomic<uint32_t> mapped_{0};  // of header.grown; what is counted there does not change
  BoardSection sections_[kMostBoardSections];
};

}  // namespace hvd::rt
