#include <cstring>
#include <new>

#include "runtime/collective/collectives.h"
#include "runtime/engine/agreement/board_lock.h"

namespace hvd {
namespace {

uint64_t TensorBytes(const Signature& signature) {
  const bool tensor = signature.kind != RequestKind::kBarrier &&
                      signature.kind != RequestKind::kLeave && signature.kind != RequestKind::kJoin;
  return tensor ? signature.elements() * DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype)) : 0;
}

}  // namespace

// Whoever claimed the completion calls this; nobody else touches the entry until it is in the log.
// So it must come there, or the epoch ends. `wants_number`: the name, if it shall have a direct
// one.
void Board::Complete(uint32_t number, MarkWord claimed, std::string_view wants_number) {
  memory_.entry(number).claimed = claimed.bits();
  if (place_.several_hosts) return PushOutbox(number);
  try {
    LogEntry agreed = DecideHere(number, claimed);
    // A rank that has joined would not hear of it.
    const bool all_hear = agreed.error.empty() && claimed.neutral() == 0 && place_.bind;
    if (all_hear && !wants_number.empty()) agreed.direct_number = place_.bind(wants_number);
    AppendEntry(agreed);
  } catch (const std::bad_alloc& error) {
    AbortThrown(error, KeptName(memory_.entry(number)));
  }
}

LogEntry Board::DecideHere(uint32_t number, MarkWord claimed) const {
  const BoardEntry& entry = memory_.entry(number);
  LogEntry agreed;
  if (claimed.changed() > 0 || claimed.neutral() > 0) {
    agreed = Decide(KeptName(entry), ReadReport(number), place_.world_size);
  } else {
    agreed.signature = entry.agreed;
    agreed.contributors = place_.local_size;
    if (agreed.signature.kind == RequestKind::kJoin)
      agreed.result = RankHere(memory_.header().last_joined);
  }
  agreed.number = number;
  if (agreed.error.empty() && agreed.signature.kind == RequestKind::kAllgather) {
    for (int r = 0; r < place_.local_size; ++r) {
      agreed.rows.push_back(RowsOf(number, claimed, r));
    }
  }
  return agreed;
}

// A rank that has joined brings none.
int64_t Board::RowsOf(uint32_t number, MarkWord claimed, int local_rank) const {
  const bool neutral = claimed.neutral() > 0 && memory_.entry(number).neutral.Has(local_rank);
  return neutral ? 0 : memory_.mark(number, claimed.run(), local_rank).rows;
}

// Of an entry that is claimed.
Report Board::ReadReport(uint32_t number) const {
  const BoardEntry& entry = memory_.entry(number);
  const MarkWord claimed(entry.claimed);
  Report report;
  report.contributors = claimed.asked();
  int same = -1;
  for (int r = place_.local_size - 1; r >= 0; --r) {
    const bool neutral = claimed.neutral() > 0 && entry.neutral.Has(r);
    const bool changed = claimed.changed() > 0 && entry.changed.Has(r);
    if (neutral) report.joined_rank = RankHere(r);
    if (!neutral && !changed) same = RankHere(r);
  }
  const Asker proposed = {RankHere(entry.proposed_rank), entry.proposed};
  if (same >= 0) {
    report.first = {same, entry.agreed};
    if (claimed.changed() > 0) report.other = proposed;
  } else {
    report.first = proposed;
    if (entry.mismatch) report.other = Asker{RankHere(entry.other_rank), entry.other};
  }
  if (report.first.signature.kind == RequestKind::kJoin) {
    report.last_joined = RankHere(memory_.header().last_joined);
  }
  if (report.first.signature.kind == RequestKind::kAllgather) {
    report.rows.push_back(place_.host);
    for (int r = 0; r < place_.local_size; ++r) {
      report.rows.push_back(RowsOf(number, claimed, r));
    }
  }
  return report;
}

// REQUIRES: the entry is claimed. A log as long as there are numbers never has to wait for a
// reader: a number completes again only after every local rank has executed it.
void Board::AppendEntry(const LogEntry& agreed) {
  BoardHeader& header = memory_.header();
  BoardEntry& entry = memory_.entry(agreed.number);
  const bool fine = agreed.error.empty();
  const bool anew = fine && (!entry.registered || !Compatible(entry.agreed, agreed.signature));
  if (anew) {
    entry.agreed = agreed.signature;
    entry.registered = true;
  }
  const MarkWord claimed(entry.claimed);
  entry.neutral = {};
  if (fine && agreed.signature.kind == RequestKind::kJoin) ClearNeutral();
  const LogPlace place(header.log_end.fetch_add(1, std::memory_order_acq_rel));
  if (!FollowLog(place.chunk())) return;  // the epoch has ended
  const uint64_t seq = place.seq();
  entry.last_log_end.store(seq + 1, std::memory_order_relaxed);
  // From here on the entry is like any other, but nobody marks it before it has executed it.
  entry.word.fetch_add((anew ? MarkWord::kVersion : 0) - MarkWord::kInFlight,
                       std::memory_order_release);
  LogSlot& slot = memory_.slot(place.chunk(), seq);
  WriteSlot(&slot, agreed, claimed);
  header.appended_bytes.fetch_add(slot.bytes, std::memory_order_relaxed);
  slot.published.store(seq + 1, std::memory_order_release);
}

void Board::WriteSlot(LogSlot* slot, const LogEntry& entry, MarkWord claimed) {
  slot->number = entry.number;
  slot->run = static_cast<uint8_t>(claimed.run());
  slot->has_error = !entry.error.empty();
  slot->has_rows = !entry.rows.empty();
  slot->has_buffers = claimed.buffered() == place_.local_size;
  slot->is_join = entry.error.empty() && entry.signature.kind == RequestKind::kJoin;
  slot->contributors = entry.contributors;
  slot->result = entry.result;
  slot->direct_number = entry.direct_number;
  slot->bytes = slot->has_error ? 0 : TensorBytes(entry.signature);
  if (slot->has_error) {
    char* text = memory_.text(entry.number);
    const size_t length = std::min(entry.error.size(), BoardMemory::kTextBytes - 1);
    std::memcpy(text, entry.error.data(), length);
    text[length] = 0;
  }
  std::copy(entry.rows.begin(), entry.rows.end(), memory_.rows(entry.number));
}

LogEntry Board::ReadSlot(uint64_t seq) const {
  const LogSlot& slot = memory_.slot(seq);
  // Whoever closed the batch has seen it published. In this process another thread may have
  // published it and another rank closed the batch: TSan does not see through that one's mapping.
  (void)slot.published.load(std::memory_order_acquire);
  LogEntry agreed;
  agreed.number = slot.number;
  agreed.contributors = slot.contributors;
  agreed.result = slot.result;
  agreed.direct_number = slot.direct_number;
  if (slot.has_error) {
    agreed.error = memory_.text(slot.number);
    return agreed;
  }
  agreed.signature = memory_.entry(slot.number).agreed;
  if (slot.has_rows) {
    const int64_t* rows = memory_.rows(slot.number);
    agreed.rows.assign(rows, rows + place_.world_size);
  }
  for (int r = 0; slot.has_buffers && r < place_.local_size; ++r) {
    agreed.host_buffers.push_back(memory_.mark(slot.number, slot.run, r).buffers);
  }
  return agreed;
}

bool Board::HasNext() const {
  const uint64_t begin = executed_.load(std::memory_order_relaxed);
  return Follow() && memory_.batch_end(begin).load(std::memory_order_acquire) > begin;
}

// Whoever closed the batch may have seen more of the board than this rank.
std::vector<LogEntry> Board::NextBatch() const {
  std::vector<LogEntry> entries;
  if (!HasNext()) return entries;
  const uint64_t begin = executed_.load(std::memory_order_relaxed);
  const uint64_t end = memory_.batch_end(begin).load(std::memory_order_acquire);
  if (!Follow()) return entries;
  entries.reserve(end - begin);
  for (uint64_t seq = begin; seq < end; ++seq) entries.push_back(ReadSlot(seq));
  return entries;
}

void Board::Advance() {
  const uint64_t begin = executed_.load(std::memory_order_relaxed);
  const uint64_t end = memory_.batch_end(begin).load(std::memory_order_acquire);
  const bool away =
      joined_.load(std::memory_order_relaxed) || left_.load(std::memory_order_relaxed);
  if (!away) {
    for (uint64_t seq = begin; seq < end; ++seq) {
      memory_.outstanding(place_.local_rank, memory_.slot(seq).number).store(0);
    }
    memory_.position(place_.local_rank).executed.store(end);
  }
  // Also when another thread has joined or left at this moment and has found the above unfinished.
  if (joined_.load()) {
    AdvanceJoined(begin, end);
  } else if (left_.load()) {
    AdvanceLeft(begin, end);
  }
  executed_.store(end, std::memory_order_release);
  std::atomic<uint32_t>& wanted = memory_.header().room_wanted;
  if (place_.several_hosts && wanted.load() != 0 && wanted.exchange(0) != 0) {
    RingHost();
  }
}

bool Board::IsAgreed(uint32_t number) const {
  const uint64_t executed = executed_.load(std::memory_order_acquire);
  return memory_.entry(number).last_log_end.load(std::memory_order_acquire) > executed;
}

// Where the open batch begins. Each batch says where the next begins; one that says what lies
// before it is of the ring's last turn, and that batch is still open.
uint64_t Board::FindOpen() const {
  uint64_t begin = executed_.load(std::memory_order_acquire);
  while (Follow()) {
    const uint64_t end = memory_.batch_end(begin).load(std::memory_order_acquire);
    if (end <= begin) break;
    begin = end;
  }
  return begin;
}

bool Board::HasOpen() const {
  if (place_.several_hosts) return false;
  const uint64_t begin = FindOpen();
  return memory_.slot(begin).published.load(std::memory_order_acquire) == begin + 1;
}

size_t Board::open_bytes() const {
  const uint64_t closed = memory_.header().closed_bytes.load(std::memory_order_acquire);
  return memory_.header().appended_bytes.load(std::memory_order_relaxed) - closed;
}

void Board::Close() {
  if (!place_.several_hosts) CloseAll();
}

// A batch is what has been published without a gap: an entry whose writer is not done yet, and all
// after it, come with the next one.
void Board::CloseAll() {
  const uint64_t begin = FindOpen();
  std::atomic<uint64_t>& batch_end = memory_.batch_end(begin);
  uint64_t stale = batch_end.load(std::memory_order_relaxed);
  uint64_t end = begin, bytes = 0;
  for (;; ++end) {
    const LogSlot& slot = memory_.slot(end);
    if (slot.published.load(std::memory_order_acquire) != end + 1) break;
    bytes += slot.bytes;
  }
  if (end == begin || stale > begin) return;
  if (batch_end.compare_exchange_strong(stale, end)) {
    memory_.header().closed_bytes.fetch_add(bytes, std::memory_order_release);
  }
}

}  // namespace hvd
