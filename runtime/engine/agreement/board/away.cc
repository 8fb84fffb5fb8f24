// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/away.h"

#include <algorithm>

namespace hvd::rt {

BoardAway::BoardAway(const BoardRoom* room, const BoardNames* names, BoardCompletion* completion,
                     BoardOutbox* outbox)
    : room_(*room),
      memory_(room->memory()),
      names_(*names),
      completion_(*completion),
      outbox_(*outbox),
      local_rank_(room->place().local_rank),
      local_size_(room->place().local_size) {}

void BoardAway::BeginJoin(uint32_t number, absl::Span<const std::string_view> owed) {
  BoardHeader& header = memory_.header();
  for (const std::string_view name : owed) ++owed_[names_.Find(name)];
  header.owed += static_cast<uint32_t>(owed.size());
  joined_.store(true);
  // Only now: an Advance at this moment either has come to its end, or finds that this rank has
  // joined, and marks what it has executed.
  joined_at_ = memory_.position(local_rank_).executed.load();
  for (const auto& [n, times] : owed_) memory_.outstanding(local_rank_, n).store(1);
  header.joined.Add(local_rank_);
  ++header.joined_count;
  header.last_joined = local_rank_;
  for (uint32_t n = 1; n <= header.used; ++n) {
    const bool mine = n == number || owed_.count(n) > 0 ||
                      memory_.outstanding(local_rank_, n).load() != 0 ||
                      memory_.entry(n).last_log_end.load() > joined_at_;
    if (!mine) MarkNeutral(n);
  }
}

void BoardAway::EndJoin(uint32_t number) {
  memory_.header().join_number = number;
  memory_.header().join_position = memory_.log_end();
  FinishJoin();
}

void BoardAway::HasMarked(uint32_t number) {
  if (has_joined()) {
    Settle(number);
  } else {
    OweLess(number);
  }
}

// Also when another thread has joined or left at this moment and has found unfinished what comes
// before this.
void BoardAway::Advance(BoardLog::Range batch) {
  if (joined_.load()) {
    AdvanceJoined(batch);
  } else if (left_.load()) {
    AdvanceLeft(batch);
  }
}

bool BoardAway::Owes(std::string_view name) const {
  return !owed_.empty() && owed_.count(names_.Find(name)) > 0;
}

void BoardAway::OweLess(uint32_t number) {
  const auto owed = owed_.find(number);
  if (owed != owed_.end() && --owed->second == 0) owed_.erase(owed);
}

// This rank, which has joined, owes one mark less. True if that completed the join.
bool BoardAway::Settle(uint32_t number) {
  OweLess(number);
  BoardHeader& header = memory_.header();
  --header.owed;
  header.join_position = memory_.log_end();
  return FinishJoin();
}

void BoardAway::GiveUp(std::string_view name) {
  bool completed = false;
  {
    BoardLock lock(room_);
    if (!lock.held()) return;
    const uint32_t number = names_.Find(name);
    const auto owed = owed_.find(number);
    if (owed == owed_.end()) return;  // the epoch has ended before this rank could say what it owes
    const bool last = owed->second == 1;
    if (last) memory_.outstanding(local_rank_, number).store(0);
    if (left_.load(std::memory_order_relaxed)) {
      OweLess(number);
      return (void)EndIfAwaited(number).ok();  // every wait says it
    }
    if (last) completed = MarkNeutral(number);
    if (Settle(number)) completed = true;
  }
  if (completed) room_.RingHost();
}

// The join is complete here when all have joined, have marked what they owe and
// have executed what was in the log then: a rank that is behind has yet to mark what it will find
// there, and others may have asked for that again before they joined. True if this completed it.
bool BoardAway::FinishJoin() {
  const BoardHeader& header = memory_.header();
  if (header.joined_count < static_cast<uint32_t>(local_size_)) return false;
  if (header.owed > 0) return false;
  for (int r = 0; r < local_size_; ++r) {
    if (memory_.position(r).executed.load(std::memory_order_acquire) < header.join_position) {
      return false;
    }
  }
  BoardEntry& entry = memory_.entry(header.join_number);
  const MarkWord word(entry.word.load(std::memory_order_acquire));
  if (!word.IsComplete(local_size_)) return false;
  entry.word.store(word.Claimed().bits(), std::memory_order_release);
  completion_.Complete(header.join_number, word);
  return true;
}

// True if that made it complete.
bool BoardAway::MarkNeutral(uint32_t number) {
  BoardEntry& entry = memory_.entry(number);
  if (entry.neutral.Has(local_rank_)) return false;
  entry.neutral.Add(local_rank_);
  uint64_t seen = entry.word.load(std::memory_order_acquire);
  while (true) {
    const MarkWord next(seen + MarkWord::kArrived + MarkWord::kNeutral);
    const bool complete = next.IsComplete(local_size_);
    if (entry.word.compare_exchange_weak(seen, complete ? next.Claimed().bits() : next.bits())) {
      if (complete) completion_.Complete(number, next);
      return complete;
    }
  }
}

// This rank has executed the batch while it has joined, or the end of its join. Nobody else has
// seen the entries that it completes here: the host's ranks are rung for them.
void BoardAway::AdvanceJoined(BoardLog::Range batch) {
  bool is_over = false, completed = false;
  {
    BoardLock lock(room_);
    if (!lock.held()) return;
    const bool joined = memory_.header().joined.Has(local_rank_);
    // Join itself has marked the entries that it found done.
    for (uint64_t seq = std::max(batch.begin, joined_at_); seq < batch.end; ++seq) {
      const LogRecord& record = memory_.record(seq);
      is_over = is_over || record.is_join;
      const bool owed = owed_.count(record.number) > 0;
      memory_.outstanding(local_rank_, record.number)
          .store(owed ? 1 : 0, std::memory_order_release);
      if (joined && !owed && MarkNeutral(record.number)) completed = true;
    }
    memory_.position(local_rank_).executed.store(batch.end, std::memory_order_release);
    if (FinishJoin()) completed = true;
  }
  if (is_over) joined_.store(false, std::memory_order_relaxed);
  if (completed) room_.RingHost();
}

absl::Status BoardAway::NoteLeft(absl::Span<const std::string_view> owed) {
  BoardLock lock(room_);
  if (!lock.held()) return room_.Aborted();
  BoardHeader& header = memory_.header();
  // First: an Advance at this moment either has come to its end, or looks who waits (AdvanceLeft).
  left_.store(true);
  for (const std::string_view name : owed) {
    const uint32_t number = names_.Find(name);
    ++owed_[number];
    memory_.outstanding(local_rank_, number).store(1);
  }
  header.left.Add(local_rank_);
  header.left_count.fetch_add(1);
  for (uint32_t n = 1; n <= header.used; ++n) {
    if (absl::Status ended = EndIfAwaited(n); !ended.ok()) return ended;
  }
  if (room_.place().several_hosts) outbox_.PushLeft(local_rank_);
  return absl::OkStatus();
}

// By a rank that has left: others may have asked for what it does not bring.
absl::Status BoardAway::EndIfAwaited(uint32_t number) const {
  const MarkWord word(memory_.entry(number).word.load());
  const bool brings = memory_.outstanding(local_rank_, number).load() != 0;
  if (word.asked() == 0 || brings) return absl::OkStatus();
  return room_.AbortLeft(room_.RankHere(local_rank_), BoardNames::KeptName(memory_.entry(number)));
}

// This rank has left, and has executed the batch. A peer that was faster may have
// asked for some of it again, when it could not know yet that this rank never will.
void BoardAway::AdvanceLeft(BoardLog::Range batch) {
  BoardLock lock(room_);
  if (!lock.held()) return;
  for (uint64_t seq = batch.begin; seq < batch.end; ++seq) {
    const uint32_t number = memory_.record(seq).number;
    memory_.outstanding(local_rank_, number).store(owed_.count(number) > 0 ? 1 : 0);
  }
  memory_.position(local_rank_).executed.store(batch.end);
  for (uint64_t seq = batch.begin; seq < batch.end; ++seq) {
    // Every wait says it.
    if (!EndIfAwaited(memory_.record(seq).number).ok()) return;
  }
}

// A rank that has left answers what it has submitted before, and nothing else.
absl::Status BoardAway::CheckLeft(uint32_t number, int run, std::string_view name) {
  BoardLock lock(room_);
  if (!lock.held()) return room_.Aborted();
  for (int r = 0; r < local_size_; ++r) {
    if (!memory_.header().left.Has(r) || memory_.outstanding(r, number).load() != 0) continue;
    const MarkWord word(memory_.entry(number).word.load());
    // If the run has changed, the entry has been completed, and that rank is done with it.
    if (word.run() == run) return room_.AbortLeft(room_.RankHere(r), name);
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
