// SPDX-License-Identifier: Apache-2.0
// A board's log: the agreed sequence of batches, which every rank executes in order. Whoever has
// claimed a completion appends it; a batch closes over all that lies in the log without a gap.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/engine/agreement/board/room.h"

namespace hvd::rt {

// Threads: Next and SetExecuted of one rank are called by one at a time. The rest: any.
class BoardLog {
 public:
  // Places in the log.
  struct Range {
    uint64_t begin = 0, end = 0;
  };

  explicit BoardLog(const BoardRoom* room) : room_(*room) {}

  // REQUIRES: the entry is claimed. A join: under the lock.
  void Append(const LogEntry& agreed);
  // Makes a batch of what no batch holds yet.
  void Close();

  // As Board's.
  bool HasOpen() const;
  size_t open_bytes() const;
  bool HasNext() const {
    const uint64_t begin = executed_.load(std::memory_order_relaxed);
    return room_.Follow() &&
           room_.memory().batch_end(begin).load(std::memory_order_acquire) > begin;
  }
  std::vector<LogEntry> NextBatch() const;
  bool IsAgreed(uint32_t number) const {
    const uint64_t executed = executed_.load(std::memory_order_acquire);
    return room_.memory().entry(number).last_log_end.load(std::memory_order_acquire) > executed;
  }

  // Where this rank's next batch lies, once it is closed.
  Range Next() const {
    const uint64_t begin = executed_.load(std::memory_order_relaxed);
    return {begin, room_.memory().batch_end(begin).load(std::memory_order_acquire)};
  }
  // This rank has executed that batch, and marks nothing by itself: says so to the others.
  void TellExecuted(Range batch);
  void SetExecuted(uint64_t end) { executed_.store(end, std::memory_order_release); }

 private:
  void Write(LogRecord* record, const LogEntry& entry, MarkWord claimed);
  LogEntry Read(uint64_t seq) const;
  uint64_t FindOpen() const;
  void EndJoins() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);

  const BoardRoom& room_;
  std::atomic<uint64_t> executed_{0};  // by this rank: where its next batch begins
};

}  // namespace hvd::rt
