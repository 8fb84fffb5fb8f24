#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "runtime/engine/agreement/board_lock.h"

namespace hvd {

// The outbox is a list through the entries, since each number is in flight once at most, and
// through the positions, since each local rank leaves once. A word is a number, or says who has
// left.
uint32_t& Board::NextOut(uint32_t word) const {
  if ((word & kLeftFlag) == 0) return memory_.entry(word).next_out;
  return memory_.position(static_cast<int>(word & ~kLeftFlag)).next_out;
}

void Board::PushOutbox(uint32_t word) {
  std::atomic<uint32_t>& outbox = memory_.header().outbox;
  uint32_t before = outbox.load(std::memory_order_relaxed);
  do {
    NextOut(word) = before;
  } while (!outbox.compare_exchange_weak(before, word, std::memory_order_release,
                                         std::memory_order_relaxed));
}

bool Board::HasOutbox() const {
  return outbox_ != 0 || memory_.header().outbox.load(std::memory_order_acquire) != 0;
}

std::optional<OutboxEntry> Board::TakeOutbox() {
  if (!HasOutbox()) return std::nullopt;
  if (outbox_ == 0) {
    uint32_t pushed = memory_.header().outbox.exchange(0, std::memory_order_acq_rel);
    if (!Follow()) return std::nullopt;  // the epoch has ended
    while (pushed != 0) {
      const uint32_t before = std::exchange(NextOut(pushed), outbox_);
      outbox_ = std::exchange(pushed, before);
    }
  }
  const uint32_t word = std::exchange(outbox_, NextOut(outbox_));
  OutboxEntry taken;
  if ((word & kLeftFlag) == 0) {
    // As in ReadSlot: what this process's other threads wrote to the entry came before their marks.
    (void)memory_.entry(word).word.load(std::memory_order_acquire);
    taken.number = word;
    taken.tenant = memory_.entry(word).tenant;
    taken.report = ReadReport(word);
    return taken;
  }
  const int local_rank = static_cast<int>(word & ~kLeftFlag);
  taken.is_left = true;
  taken.left_rank = RankHere(local_rank);
  Lock lock(*this);
  for (uint32_t n = 1; lock.held() && n <= memory_.header().used; ++n) {
    // What is in the log is answered, though this rank may not have executed it yet.
    const MarkWord entry(memory_.entry(n).word.load());
    if (entry.asked() == 0 && !entry.in_flight()) continue;
    if (memory_.outstanding(local_rank, n).load() != 0) taken.left_names.push_back(Name(n));
  }
  return taken;
}

void Board::Append(absl::Span<const LogEntry> batch) {
  const bool has_join = std::any_of(batch.begin(), batch.end(), [](const LogEntry& entry) {
    return entry.signature.kind == RequestKind::kJoin;
  });
  std::optional<Lock> lock;
  if (has_join) lock.emplace(*this);
  for (const LogEntry& entry : batch) AppendEntry(entry);
  CloseAll();
}

absl::StatusOr<std::optional<uint32_t>> Board::Adopt(std::string_view name) {
  std::optional<uint32_t> adopted;
  const absl::StatusOr<uint32_t> found = WithRoom(name, [&]() -> absl::StatusOr<uint32_t> {
    memory_.header().room_wanted.store(1);
    const uint32_t number = FindOrCreate(name);
    if (number == kNone || number == kFull) return number;
    const absl::StatusOr<bool> claimed = ClaimNeutral(number, name);
    if (!claimed.ok()) return claimed.status();
    if (*claimed) adopted = number;
    return number;
  });
  if (!found.ok()) return found.status();
  return adopted;
}

// Under the lock. False while a rank here is too far behind.
absl::StatusOr<bool> Board::ClaimNeutral(uint32_t number, std::string_view name) {
  BoardEntry& entry = memory_.entry(number);
  const MarkWord word(entry.word.load(std::memory_order_acquire));
  const bool all_joined = memory_.header().joined_count == static_cast<uint32_t>(place_.local_size);
  if (word.asked() > 0 || !all_joined) {
    return absl::InternalError("the root decided " + ShownName(name) +
                               ", which no rank of this host has submitted");
  }
  if (word.neutral() < place_.local_size || !IsIdle(entry, word)) return false;
  memory_.header().room_wanted.store(0);
  entry.claimed = word.bits();
  entry.word.store(word.Claimed().bits(), std::memory_order_release);
  return true;
}

}  // namespace hvd
