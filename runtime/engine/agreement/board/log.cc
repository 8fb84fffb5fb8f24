// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/log.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/collectives.h"
#include "runtime/engine/request/mismatch.h"

namespace hvd::rt {
namespace {

uint64_t TensorBytes(const Signature& signature) {
  const bool tensor = signature.kind != RequestKind::kBarrier &&
                      signature.kind != RequestKind::kLeave && signature.kind != RequestKind::kJoin;
  return tensor ? signature.elements() * DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype)) : 0;
}

}  // namespace

// A log as long as there are numbers never has to wait for a reader: a number completes again only
// after every local rank has executed it.
void BoardLog::Append(const LogEntry& agreed) {
  const BoardMemory& memory = room_.memory();
  BoardHeader& header = memory.header();
  BoardEntry& entry = memory.entry(agreed.number);
  const bool fine = agreed.error.empty();
  const bool anew = fine && (!entry.registered || !Compatible(entry.agreed, agreed.signature));
  if (anew) {
    entry.agreed = agreed.signature;
    entry.registered = true;
  }
  const MarkWord claimed(entry.claimed);
  entry.neutral = {};
  if (fine && agreed.signature.kind == RequestKind::kJoin) {
    kBoardLock.AssertHeld();
    EndJoins();
  }
  const LogPlace place(header.log_end.fetch_add(1, std::memory_order_acq_rel));
  if (!room_.FollowLog(place.section())) return;  // the epoch has ended
  const uint64_t seq = place.seq();
  entry.last_log_end.store(seq + 1, std::memory_order_relaxed);
  // From here on the entry is like any other, but nobody marks it before it has executed it.
  entry.word.fetch_add((anew ? MarkWord::kVersion : 0) - MarkWord::kInFlight,
                       std::memory_order_release);
  LogRecord& record = memory.record(place.section(), seq);
  Write(&record, agreed, claimed);
  header.appended_bytes.fetch_add(record.bytes, std::memory_order_relaxed);
  record.published.store(seq + 1, std::memory_order_release);
}

// Takes the marks of those who have joined away again: all have joined, so nobody marks; and what
// is in flight has no such marks.
void BoardLog::EndJoins() {
  BoardHeader& header = room_.header();
  header.joined = {};
  header.joined_count = 0;
  for (uint32_t n = 1; n <= header.used; ++n) {
    BoardEntry& entry = room_.memory().entry(n);
    const MarkWord word(entry.word.load(std::memory_order_acquire));
    if (word.neutral() == 0) continue;
    entry.neutral = {};
    entry.word.store(word.WithoutNeutral().bits(), std::memory_order_release);
  }
}

void BoardLog::Write(LogRecord* record, const LogEntry& entry, MarkWord claimed) {
  record->number = entry.number;
  record->run = static_cast<uint8_t>(claimed.run());
  record->has_error = !entry.error.empty();
  record->has_rows = !entry.rows.empty();
  record->has_buffers = claimed.buffered() == room_.place().local_size;
  record->is_join = entry.error.empty() && entry.signature.kind == RequestKind::kJoin;
  record->contributors = entry.contributors;
  record->result = entry.result;
  record->direct_number = entry.direct_number;
  record->bytes = record->has_error ? 0 : TensorBytes(entry.signature);
  if (record->has_error) {
    char* text = room_.memory().text(entry.number);
    const size_t length = std::min(entry.error.size(), BoardMemory::kTextBytes - 1);
    std::memcpy(text, entry.error.data(), length);
    text[length] = 0;
  }
  std::copy(entry.rows.begin(), entry.rows.end(), room_.memory().rows(entry.number));
}

LogEntry BoardLog::Read(uint64_t seq) const {
  const BoardMemory& memory = room_.memory();
  const LogRecord& record = memory.record(seq);
  // Whoever closed the batch has seen it published. In this process another thread may have
  // published it and another rank closed the batch: TSan does not see through that one's mapping.
  (void)record.published.load(std::memory_order_acquire);
  LogEntry agreed;
  agreed.number = record.number;
  agreed.contributors = record.contributors;
  agreed.result = record.result;
  agreed.direct_number = record.direct_number;
  if (record.has_error) {
    agreed.error = memory.text(record.number);
    return agreed;
  }
  agreed.signature = memory.entry(record.number).agreed;
  if (record.has_rows) {
    const int64_t* rows = memory.rows(record.number);
    agreed.rows.assign(rows, rows + room_.place().world_size);
  }
  for (int r = 0; record.has_buffers && r < room_.place().local_size; ++r) {
    agreed.host_buffers.push_back(memory.marked(record.number, record.run, r).buffers);
  }
  return agreed;
}

// Whoever closed the batch may have seen more of the board than this rank.
std::vector<LogEntry> BoardLog::NextBatch() const {
  std::vector<LogEntry> entries;
  if (!HasNext()) return entries;
  const Range batch = Next();
  if (!room_.Follow()) return entries;
  entries.reserve(batch.end - batch.begin);
  for (uint64_t seq = batch.begin; seq < batch.end; ++seq) entries.push_back(Read(seq));
  return entries;
}

void BoardLog::TellExecuted(Range batch) {
  const BoardMemory& memory = room_.memory();
  const int local_rank = room_.place().local_rank;
  for (uint64_t seq = batch.begin; seq < batch.end; ++seq) {
    memory.outstanding(local_rank, memory.record(seq).number).store(0);
  }
  memory.position(local_rank).executed.store(batch.end);
}

// Where the open batch begins. Each batch says where the next begins; one that says what lies
// before it is of the ring's last round, and that batch is still open.
uint64_t BoardLog::FindOpen() const {
  uint64_t begin = executed_.load(std::memory_order_acquire);
  while (room_.Follow()) {
    const uint64_t end = room_.memory().batch_end(begin).load(std::memory_order_acquire);
    if (end <= begin) break;
    begin = end;
  }
  return begin;
}

bool BoardLog::HasOpen() const {
  const uint64_t begin = FindOpen();
  return room_.memory().record(begin).published.load(std::memory_order_acquire) == begin + 1;
}

size_t BoardLog::open_bytes() const {
  const uint64_t closed = room_.header().closed_bytes.load(std::memory_order_acquire);
  return room_.header().appended_bytes.load(std::memory_order_relaxed) - closed;
}

// A batch is what has been published without a gap: an entry whose writer is not done yet, and all
// after it, come with the next one.
void BoardLog::Close() {
  const BoardMemory& memory = room_.memory();
  const uint64_t begin = FindOpen();
  std::atomic<uint64_t>& batch_end = memory.batch_end(begin);
  uint64_t stale = batch_end.load(std::memory_order_relaxed);
  uint64_t end = begin, bytes = 0;
  for (;; ++end) {
    const LogRecord& record = memory.record(end);
    if (record.published.load(std::memory_order_acquire) != end + 1) break;
    bytes += record.bytes;
  }
  if (end == begin || stale > begin) return;
  if (batch_end.compare_exchange_strong(stale, end)) {
    memory.header().closed_bytes.fetch_add(bytes, std::memory_order_release);
  }
}

}  // namespace hvd::rt
