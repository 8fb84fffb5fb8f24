#include <algorithm>

#include "runtime/engine/agreement/board_lock.h"

namespace hvd {
namespace {

constexpr char kJoinName[] = "\x01join";  // as kOwnName

}  // namespace

// A rank that has joined marks every entry that it has not asked for itself, now and whenever it
// has executed one; whoever makes a new entry marks it for those who have joined. So the others'
// marks need not know. When all have joined these marks are taken away again, before any rank can
// submit.
absl::StatusOr<uint32_t> Board::Join(absl::Span<const std::string_view> owed) {
  if (joined_.load(std::memory_order_relaxed)) {
    return absl::FailedPreconditionError("this rank has joined already; its join has not returned");
  }
  int run = 0;
  const absl::StatusOr<uint32_t> number =
      WithRoom(kJoinName, [&] { return JoinLocked(owed, &run); });
  if (!number.ok() || memory_.header().left_count.load() == 0) return number;
  if (absl::Status left = CheckLeft(*number, run, "join"); !left.ok()) return left;
  return number;
}

absl::StatusOr<uint32_t> Board::JoinLocked(absl::Span<const std::string_view> owed, int* run) {
  MarkValue join;
  join.signature.kind = RequestKind::kJoin;
  const uint32_t number = FindOrCreate(kJoinName);  // before this rank is among the joined
  if (number == kNone || number == kFull) return number;
  BoardHeader& header = memory_.header();
  // What changes until the others have joined this rank does not follow (MarkWord::kVersion).
  numbers_.clear();
  known_.clear();
  for (const std::string_view name : owed) ++owed_[Find(name)];
  header.owed += static_cast<uint32_t>(owed.size());
  joined_.store(true);
  // Only now: an Advance at this moment either has come to its end, or finds that this rank has
  // joined, and marks what it has executed.
  joined_at_ = memory_.position(place_.local_rank).executed.load();
  for (const auto& [n, times] : owed_) memory_.outstanding(place_.local_rank, n).store(1);
  header.joined.Add(place_.local_rank);
  ++header.joined_count;
  header.last_joined = place_.local_rank;
  for (uint32_t n = 1; n <= header.used; ++n) {
    const bool mine = n == number || owed_.count(n) > 0 ||
                      memory_.outstanding(place_.local_rank, n).load() != 0 ||
                      memory_.entry(n).last_log_end.load() > joined_at_;
    if (!mine) MarkNeutral(n);
  }
  const uint32_t marked = MarkLocked(kJoinName, join, run);
  header.join_number = number;
  header.join_position = memory_.log_end();
  FinishJoin();
  return marked;
}

// Under the lock.
bool Board::Owes(std::string_view name) const {
  return !owed_.empty() && owed_.count(Find(name)) > 0;
}

// Under the lock.
void Board::OweLess(uint32_t number) {
  const auto owed = owed_.find(number);
  if (owed != owed_.end() && --owed->second == 0) owed_.erase(owed);
}

// Under the lock: this rank, which has joined, owes one mark less. True if that completed the join.
bool Board::Settle(uint32_t number) {
  OweLess(number);
  BoardHeader& header = memory_.header();
  --header.owed;
  header.join_position = memory_.log_end();
  return FinishJoin();
}

void Board::GiveUp(std::string_view name) {
  bool completed = false;
  {
    Lock lock(*this);
    if (!lock.held()) return;
    const uint32_t number = Find(name);
    const auto owed = owed_.find(number);
    if (owed == owed_.end()) return;  // the epoch has ended before this rank could say what it owes
    const bool last = owed->second == 1;
    if (last) memory_.outstanding(place_.local_rank, number).store(0);
    if (left_.load(std::memory_order_relaxed)) {
      OweLess(number);
      return (void)EndIfAwaited(number).ok();  // every wait says it
    }
    if (last) completed = MarkNeutral(number);
    if (Settle(number)) completed = true;
  }
  if (completed) RingHost();
}

// Under the lock. The join is complete here when all have joined, have marked what they owe and
// have executed what was in the log then: a rank that is behind has yet to mark what it will find
// there, and others may have asked for that again before they joined. True if this completed it.
bool Board::FinishJoin() {
  const BoardHeader& header = memory_.header();
  if (header.joined_count < static_cast<uint32_t>(place_.local_size)) return false;
  if (header.owed > 0) return false;
  for (int r = 0; r < place_.local_size; ++r) {
    if (memory_.position(r).executed.load(std::memory_order_acquire) < header.join_position) {
      return false;
    }
  }
  BoardEntry& entry = memory_.entry(header.join_number);
  const MarkWord word(entry.word.load(std::memory_order_acquire));
  if (!word.IsComplete(place_.local_size)) return false;
  entry.word.store(word.Claimed().bits(), std::memory_order_release);
  Complete(header.join_number, word);
  return true;
}

// Under the lock. True if that made it complete.
bool Board::MarkNeutral(uint32_t number) {
  BoardEntry& entry = memory_.entry(number);
  if (entry.neutral.Has(place_.local_rank)) return false;
  entry.neutral.Add(place_.local_rank);
  uint64_t seen = entry.word.load(std::memory_order_acquire);
  while (true) {
    const MarkWord next(seen + MarkWord::kArrived + MarkWord::kNeutral);
    const bool complete = next.IsComplete(place_.local_size);
    if (entry.word.compare_exchange_weak(seen, complete ? next.Claimed().bits() : next.bits())) {
      if (complete) Complete(number, next);
      return complete;
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

// This rank has executed [begin, end) of the log while it has joined, or the end of its join. What
// it completes here nobody else has seen: the host's ranks are rung for it.
void Board::AdvanceJoined(uint64_t begin, uint64_t end) {
  bool is_over = false, completed = false;
  {
    Lock lock(*this);
    if (!lock.held()) return;
    const bool joined = memory_.header().joined.Has(place_.local_rank);
    // What Join has found done it has marked.
    for (uint64_t seq = std::max(begin, joined_at_); seq < end; ++seq) {
      const LogSlot& slot = memory_.slot(seq);
      is_over = is_over || slot.is_join;
      const bool owed = owed_.count(slot.number) > 0;
      memory_.outstanding(place_.local_rank, slot.number)
          .store(owed ? 1 : 0, std::memory_order_release);
      if (joined && !owed && MarkNeutral(slot.number)) completed = true;
    }
    memory_.position(place_.local_rank).executed.store(end, std::memory_order_release);
    if (FinishJoin()) completed = true;
  }
  if (is_over) joined_.store(false, std::memory_order_relaxed);
  if (completed) RingHost();
}

}  // namespace hvd
