#include <algorithm>

#include "hostfile/printable.h"
#include "runtime/engine/board_lock.h"

namespace hvd {
namespace {

// An outbox word: a tag that says whose turn of the ring it is, and a number or a local rank. The
// tag is the low half of the word's place in the outbox, and may wrap: what else can lie there is
// from the ring's last turn, so it differs by the ring's length, which is less than 2^32.
constexpr int kTagShift = 32;

}  // namespace

void Board::PushOutbox(uint32_t word) {
  const uint64_t at = memory_.header().outbox_end.fetch_add(1, std::memory_order_relaxed);
  memory_.outbox(at).store((at + 1) << kTagShift | word, std::memory_order_release);
}

bool Board::HasOutbox() const {
  const uint64_t word = memory_.outbox(outbox_begin_).load(std::memory_order_acquire);
  return word >> kTagShift == ((outbox_begin_ + 1) & 0xffffffffu);
}

std::optional<OutboxEntry> Board::TakeOutbox() {
  if (!HasOutbox()) return std::nullopt;
  const auto word =
      static_cast<uint32_t>(memory_.outbox(outbox_begin_++).load(std::memory_order_relaxed));
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
  Lock lock(*this);
  if (!lock.held()) return absl::AbortedError(CauseOf(*place_.page).text);
  memory_.header().room_wanted.store(1);
  const uint32_t number = FindOrCreate(name);
  if (number == 0) return std::optional<uint32_t>();
  BoardEntry& entry = memory_.entry(number);
  const MarkWord word(entry.word.load(std::memory_order_acquire));
  const bool all_joined = memory_.header().joined_count == static_cast<uint32_t>(place_.local_size);
  if (word.asked() > 0 || !all_joined) {
    return absl::InternalError("the root decided " + ShownName(name) +
                               ", which no rank of this host has submitted");
  }
  if (word.neutral() < place_.local_size || !IsIdle(entry, word)) return std::optional<uint32_t>();
  memory_.header().room_wanted.store(0);
  entry.claimed = word.bits();
  entry.word.store(word.Claimed().bits(), std::memory_order_release);
  return std::optional<uint32_t>(number);
}

}  // namespace hvd
