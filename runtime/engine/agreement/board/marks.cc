// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/marks.h"

#include "runtime/engine/request/mismatch.h"

namespace hvd::rt {
namespace {

uint64_t CountsFor(const MarkValue& value) {
  const bool buffered = value.input_at >= 0 && value.output_at >= 0;
  return MarkWord::kArrived + (buffered ? MarkWord::kBuffered : 0);
}

}  // namespace

BoardMarks::Marked BoardMarks::MarkKnown(std::string_view name, const MarkValue& value) {
  const auto at = numbers_.find(name);
  if (at == numbers_.end()) return {};
  const uint32_t number = at->second;
  const Known& known = known_[number];
  if (!known.registered || !Compatible(known.agreed, value.signature)) return {};
  const int run = MarkWord(known.entry->word.load(std::memory_order_relaxed)).run();
  if (!TryMark(number, value, CountsFor(value))) return {};
  return {number, run};
}

// Under the lock the entry keeps its name, and this rank's mark is missing, so that what was agreed
// stays too. The memory that the mark needs is there before others can see it.
BoardMarks::Marked BoardMarks::MarkNew(std::string_view name, const MarkValue& value) {
  const uint32_t number = names_.FindOrCreate(name);
  if (!IsNumber(number)) return {number};
  Remember(number, name);
  if (before_mark_) before_mark_(number);
  BoardEntry& entry = room_.memory().entry(number);
  const int run = MarkWord(entry.word.load(std::memory_order_relaxed)).run();
  uint64_t counts = CountsFor(value);
  if (!entry.registered || !Compatible(entry.agreed, value.signature)) {
    Propose(&entry, value.signature);
    counts += MarkWord::kChanged;
  }
  TryMark(number, value, counts);
  return {number, run};
}

void BoardMarks::Forget() {
  numbers_.clear();
  known_.clear();
}

// Adds this rank's mark, and completes the entry if it is the last (a join: BoardAway does). False
// if the entry is no longer what this rank knows.
bool BoardMarks::TryMark(uint32_t number, const MarkValue& value, uint64_t counts) {
  const Known& known = known_[number];
  BoardEntry& entry = *known.entry;
  const uint32_t version = known.version;
  const int local_size = room_.place().local_size;
  uint64_t seen = entry.word.load(std::memory_order_acquire);
  if (MarkWord(seen).version() != version) return false;
  // Written before the mark, for whoever completes it. If the entry is stale, the places written
  // are this rank's too, and not in use.
  std::atomic<uint8_t>& outstanding = *known.outstanding;
  outstanding.store(1, std::memory_order_release);
  if (value.signature.kind == RequestKind::kAllgather || counts >= MarkWord::kBuffered) {
    room_.memory().marked(number, MarkWord(seen).run(), room_.place().local_rank) = {
        value.signature.rows(), {value.input_at, value.output_at}};
  }
  while (true) {
    const MarkWord next(seen + counts);
    const bool complete = next.IsComplete(local_size) && value.signature.kind != RequestKind::kJoin;
    if (entry.word.compare_exchange_weak(seen, complete ? next.Claimed().bits() : next.bits())) {
      const std::string_view wants_number = value.wants_number ? known.name : std::string_view();
      if (complete) completion_.Complete(number, next, wants_number);
      return true;
    }
    if (MarkWord(seen).version() != version) {
      outstanding.store(0, std::memory_order_release);
      return false;
    }
  }
}

// Remembers the name, so that this rank's next mark of it needs no lock.
void BoardMarks::Remember(uint32_t number, std::string_view name) {
  if (known_.size() <= number) known_.resize(number + 1);
  Known& known = known_[number];
  if (known.name != name) {
    if (!known.name.empty()) numbers_.erase(known.name);
    known.name = name;
    numbers_[known.name] = number;
  }
  BoardEntry& entry = room_.memory().entry(number);
  known.entry = &entry;
  known.outstanding = &room_.memory().outstanding(room_.place().local_rank, number);
  known.version = MarkWord(entry.word.load(std::memory_order_relaxed)).version();
  known.registered = entry.registered;
  if (known.registered) known.agreed = entry.agreed;
}

// This rank asks for something new. Only one proposal is kept, and one that differs from it.
void BoardMarks::Propose(BoardEntry* entry, const Signature& signature) {
  const int local_rank = room_.place().local_rank;
  if (MarkWord(entry->word.load(std::memory_order_acquire)).changed() == 0) {
    entry->proposed = signature;
    entry->proposed_rank = local_rank;
    entry->mismatch = false;
    entry->changed = {};
  } else if (!entry->mismatch && !Compatible(entry->proposed, signature)) {
    entry->mismatch = true;
    entry->other = signature;
    entry->other_rank = local_rank;
  }
  entry->changed.Add(local_rank);
}

}  // namespace hvd::rt
