#include "runtime/engine/board_lock.h"

namespace hvd {
namespace {

// The first byte keeps it apart from what users call their tensors.
constexpr char kJoinName[] = "\x03join";

}  // namespace

// A rank that has joined marks every entry that it has not asked for itself, now and whenever it
// has executed one; whoever makes a new entry marks it for those who have joined. So the others'
// marks need not know. When all have joined these marks are taken away again, before any rank can
// submit.
absl::StatusOr<uint32_t> Board::Join() {
  if (joined_.load(std::memory_order_relaxed)) {
    return absl::FailedPreconditionError("this rank has joined already; hvd_join has not returned");
  }
  int run = 0;
  absl::StatusOr<uint32_t> number;
  {
    Lock lock(*this);
    if (!lock.held()) return absl::AbortedError(place_.page->abort_text);
    number = JoinLocked(&run);
  }
  if (!number.ok() || memory_.header().left_count.load() == 0) return number;
  if (absl::Status left = CheckLeft(*number, run, "join"); !left.ok()) return left;
  return number;
}

absl::StatusOr<uint32_t> Board::JoinLocked(int* run) {
  const uint32_t number = FindOrCreate(kJoinName);  // before this rank is among the joined
  if (number != 0) {
    BoardHeader& header = memory_.header();
    joined_.store(true, std::memory_order_relaxed);
    header.joined.Add(place_.local_rank);
    ++header.joined_count;
    header.last_joined = place_.local_rank;
    for (uint32_t n = 1; n <= header.used; ++n) {
      const bool mine = memory_.outstanding(place_.local_rank, n).load() != 0;
      if (n != number && !mine) MarkNeutral(n);
    }
  }
  MarkValue join;
  join.signature.kind = RequestKind::kJoin;
  return MarkLocked(kJoinName, join, run);
}

// Under the lock.
void Board::MarkNeutral(uint32_t number) {
  BoardEntry& entry = memory_.entry(number);
  entry.neutral.Add(place_.local_rank);
  uint64_t seen = entry.word.load(std::memory_order_acquire);
  while (true) {
    const MarkWord next(seen + MarkWord::kArrived + MarkWord::kNeutral);
    const bool complete = next.IsComplete(place_.local_size);
    if (entry.word.compare_exchange_weak(seen, complete ? next.Claimed().bits() : next.bits())) {
      if (complete) Complete(number, next);
      return;
    }
  }
}

// Under the lock. All have joined, so nobody marks; what is in flight has no such marks.
void Board::ClearNeutral() {
  BoardHeader& header = memory_.header();
  header.joined = {};
  header.joined_count = 0;
  for (uint32_t n = 1; n <= header.used; ++n) {
    BoardEntry& entry = memory_.entry(n);
    const MarkWord word(entry.word.load(std::memory_order_acquire));
    if (word.neutral() == 0) continue;
    entry.neutral = {};
    entry.word.store(word.WithoutNeutral().bits(), std::memory_order_release);
  }
}

// This rank has executed [begin, end) of the log while it has joined, or the end of its join.
void Board::AdvanceJoined(uint64_t begin, uint64_t end) {
  Lock lock(*this);
  if (!lock.held()) return;
  bool is_over = false;
  for (uint64_t seq = begin; seq < end; ++seq) {
    const LogSlot& slot = memory_.slot(seq);
    is_over = is_over || slot.is_join;
    memory_.outstanding(place_.local_rank, slot.number).store(0, std::memory_order_release);
    if (memory_.header().joined.Has(place_.local_rank)) MarkNeutral(slot.number);
  }
  memory_.position(place_.local_rank).executed.store(end, std::memory_order_release);
  if (is_over) joined_.store(false, std::memory_order_relaxed);
}

}  // namespace hvd
