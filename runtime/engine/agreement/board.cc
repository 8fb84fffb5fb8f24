#include "runtime/engine/agreement/board.h"

#include <algorithm>
#include <cstdio>
#include <new>

#include "base/printable.h"
#include "runtime/engine/agreement/board_lock.h"

namespace hvd {
namespace {

// " in 'name'"; nothing where there is no name. Takes no memory: what may not be shown is a
// question mark.
class PlaceText {
 public:
  explicit PlaceText(std::string_view name) {
    if (name.empty()) return;
    Append(" in '");
    while (!name.empty() && length_ < kMost) {
      const Character next = TakeCharacter(&name);
      Append(next.well_formed && next.printable ? next.bytes : "?");
    }
    Append("'");
  }
  const char* c_str() const { return text_; }

 private:
  static constexpr size_t kMost = 85;  // then a character of up to 4 bytes, and the quote

  void Append(std::string_view more) { length_ += more.copy(text_ + length_, more.size()); }

  char text_[kMost + 8] = {};
  size_t length_ = 0;
};

absl::Status Aborted(const HostPage* page) { return absl::AbortedError(CauseOf(*page).text); }

uint64_t CountsFor(const MarkValue& value) {
  const bool buffered = value.input_at >= 0 && value.output_at >= 0;
  return MarkWord::kArrived + (buffered ? MarkWord::kBuffered : 0);
}

}  // namespace

size_t Board::Bytes(int local_size, int world_size, uint32_t numbers) {
  return BoardMemory::Bytes({local_size, world_size, numbers});
}

Board::Board(const BoardPlace& place)
    : place_(place),
      memory_(place.memory, {place.local_size, place.world_size, place.numbers}, place.space) {}

absl::StatusOr<uint32_t> Board::Mark(std::string_view name, const MarkValue& value) {
  if (joined_.load(std::memory_order_relaxed) || left_.load(std::memory_order_relaxed)) {
    return MarkNew(name, value);
  }
  const auto at = numbers_.find(name);
  if (at != numbers_.end()) {
    const uint32_t number = at->second;
    const Known& known = known_[number];
    if (known.registered && Compatible(known.agreed, value.signature)) {
      const int run = MarkWord(known.entry->word.load(std::memory_order_relaxed)).run();
      if (TryMark(number, value, CountsFor(value))) {
        if (memory_.header().left_count.load() == 0) return number;
        if (absl::Status left = CheckLeft(number, run, name); !left.ok()) return left;
        return number;
      }
    }
  }
  return MarkNew(name, value);
}

// Adds this rank's mark, and completes the entry if it is the last (a join: see FinishJoin). False
// if the entry is no longer what this rank knows.
bool Board::TryMark(uint32_t number, const MarkValue& value, uint64_t counts) {
  const Known& known = known_[number];
  BoardEntry& entry = *known.entry;
  const uint32_t version = known.version;
  uint64_t seen = entry.word.load(std::memory_order_acquire);
  if (MarkWord(seen).version() != version) return false;
  // Before the mark, for whoever completes it. A stale entry's slot is this rank's too, and not in
  // use.
  std::atomic<uint8_t>& outstanding = *known.outstanding;
  outstanding.store(1, std::memory_order_release);
  if (value.signature.kind == RequestKind::kAllgather || counts >= MarkWord::kBuffered) {
    memory_.mark(number, MarkWord(seen).run(), place_.local_rank) = {
        value.signature.rows(), {value.input_at, value.output_at}};
  }
  while (true) {
    const MarkWord next(seen + counts);
    const bool complete =
        next.IsComplete(place_.local_size) && value.signature.kind != RequestKind::kJoin;
    if (entry.word.compare_exchange_weak(seen, complete ? next.Claimed().bits() : next.bits())) {
      if (complete) Complete(number, next, value.wants_number ? std::string_view(known.name) : "");
      return true;
    }
    if (MarkWord(seen).version() != version) {
      outstanding.store(0, std::memory_order_release);
      return false;
    }
  }
}

absl::StatusOr<uint32_t> Board::MarkNew(std::string_view name, const MarkValue& value) {
  int run = 0;
  const absl::StatusOr<uint32_t> number = WithRoom(name, [&]() -> absl::StatusOr<uint32_t> {
    const bool joined = joined_.load(std::memory_order_relaxed);
    if (joined && !Owes(name)) {
      return absl::FailedPreconditionError(ShownName(name) +
                                           ": this rank has joined; it submits again when its join "
                                           "has returned");
    }
    const uint32_t marked = MarkLocked(name, value, &run);
    if (marked == kNone || marked == kFull) return marked;
    if (joined) Settle(marked);
    if (!joined) OweLess(marked);
    return marked;
  });
  if (!number.ok() || memory_.header().left_count.load() == 0) return number;
  if (absl::Status left = CheckLeft(*number, run, name); !left.ok()) return left;
  return number;
}

// Under the lock the entry keeps its name, and this rank's mark is missing, so that what was agreed
// stays too.
// What it needs of memory is there before others can see the mark.
uint32_t Board::MarkLocked(std::string_view name, const MarkValue& value, int* run) {
  const uint32_t number = FindOrCreate(name);
  if (number == kNone || number == kFull) return number;
  Remember(number, name);
  if (before_mark_) before_mark_(number);
  BoardEntry& entry = memory_.entry(number);
  *run = MarkWord(entry.word.load(std::memory_order_relaxed)).run();
  uint64_t counts = CountsFor(value);
  if (!entry.registered || !Compatible(entry.agreed, value.signature)) {
    Propose(&entry, value.signature);
    counts += MarkWord::kChanged;
  }
  TryMark(number, value, counts);
  return number;
}

// This rank asks for something new. Only one proposal is kept, and one that differs from it.
void Board::Propose(BoardEntry* entry, const Signature& signature) {
  if (MarkWord(entry->word.load(std::memory_order_acquire)).changed() == 0) {
    entry->proposed = signature;
    entry->proposed_rank = place_.local_rank;
    entry->mismatch = false;
    entry->changed = {};
  } else if (!entry->mismatch && !Compatible(entry->proposed, signature)) {
    entry->mismatch = true;
    entry->other = signature;
    entry->other_rank = place_.local_rank;
  }
  entry->changed.Add(place_.local_rank);
}

// A rank that has left answers what it has submitted before, and nothing else. `run` is the entry's
// when this rank marked it.
absl::Status Board::CheckLeft(uint32_t number, int run, std::string_view name) {
  Lock lock(*this);
  if (!lock.held()) return Aborted(place_.page);
  for (int r = 0; r < place_.local_size; ++r) {
    if (!memory_.header().left.Has(r) || memory_.outstanding(r, number).load() != 0) continue;
    const MarkWord word(memory_.entry(number).word.load());
    // Else it has been completed, and that rank is done with it.
    if (word.run() == run) return AbortLeft(RankHere(r), name);
  }
  return absl::OkStatus();
}

absl::Status Board::Abort(const AbortCause& cause) const {
  AbortEpoch(place_.page, cause, place_.event_fds);
  // There may have been no note left for it.
  if (place_.page->aborted.load(std::memory_order_acquire) == 0) {
    return absl::AbortedError(cause.text);
  }
  return Aborted(place_.page);
}

// Under the lock, or after the epoch is broken anyway.
absl::Status Board::AbortLeft(int left_rank, std::string_view waiting_for) const {
  char text[sizeof(AbortNote::text)];
  snprintf(text, sizeof(text),
           "rank %d has left the job (shutdown) while other ranks wait for it in %s", left_rank,
           ShownName(waiting_for).c_str());
  return Abort({text, left_rank});
}

void Board::AbortThrown(const std::exception& error, std::string_view name) const {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const int rank = RankHere(place_.local_rank);
  char text[sizeof(AbortNote::text)];
  snprintf(text, sizeof(text), "rank %d cannot go on%s: %s", rank,
           PlaceText(PlainName(name)).c_str(),
           memory ? "out of memory; it needs more, or smaller tensors" : error.what());
  AbortEpoch(place_.page, {text, rank}, place_.event_fds);
}

absl::Status Board::NoteLeft(absl::Span<const std::string_view> owed) {
  Lock lock(*this);
  if (!lock.held()) return Aborted(place_.page);
  BoardHeader& header = memory_.header();
  // First: an Advance at this moment either has come to its end, or looks who waits (AdvanceLeft).
  left_.store(true);
  for (const std::string_view name : owed) {
    const uint32_t number = Find(name);
    ++owed_[number];
    memory_.outstanding(place_.local_rank, number).store(1);
  }
  header.left.Add(place_.local_rank);
  header.left_count.fetch_add(1);
  for (uint32_t n = 1; n <= header.used; ++n) {
    if (absl::Status ended = EndIfAwaited(n); !ended.ok()) return ended;
  }
  if (place_.several_hosts) PushOutbox(kLeftFlag | static_cast<uint32_t>(place_.local_rank));
  return absl::OkStatus();
}

// Under the lock, by a rank that has left: others may have asked for what it does not bring.
absl::Status Board::EndIfAwaited(uint32_t number) const {
  const MarkWord word(memory_.entry(number).word.load());
  const bool brings = memory_.outstanding(place_.local_rank, number).load() != 0;
  if (word.asked() == 0 || brings) return absl::OkStatus();
  return AbortLeft(RankHere(place_.local_rank), KeptName(memory_.entry(number)));
}

// This rank has left, and has executed [begin, end) of the log. A peer that was faster may have
// asked for some of it again, when it could not know yet that this rank never will.
void Board::AdvanceLeft(uint64_t begin, uint64_t end) {
  Lock lock(*this);
  if (!lock.held()) return;
  for (uint64_t seq = begin; seq < end; ++seq) {
    const uint32_t number = memory_.slot(seq).number;
    memory_.outstanding(place_.local_rank, number).store(owed_.count(number) > 0 ? 1 : 0);
  }
  memory_.position(place_.local_rank).executed.store(end);
  for (uint64_t seq = begin; seq < end; ++seq) {
    // Every wait says it.
    if (!EndIfAwaited(memory_.slot(seq).number).ok()) return;
  }
}

std::vector<OpenName> Board::Open(size_t at_most) const {
  std::vector<OpenName> open;
  Lock lock(*this);
  for (uint32_t n = 1; lock.held() && n <= memory_.header().used && open.size() < at_most; ++n) {
    const BoardEntry& entry = memory_.entry(n);
    const MarkWord word(entry.word.load());
    const bool elsewhere = place_.several_hosts && word.in_flight();
    if (word.asked() == 0 && !elsewhere) continue;
    OpenName name;
    name.name = KeptName(entry);
    if (!elsewhere)
      name.signature = word.changed() > 0 || !entry.registered ? entry.proposed : entry.agreed;
    name.waits_elsewhere = elsewhere;
    for (int r = 0; r < place_.local_size; ++r) {
      const bool submitted = memory_.outstanding(r, n).load() != 0;
      if (!submitted && entry.neutral.Has(r)) continue;
      (submitted ? name.submitted : name.missing).push_back(RankHere(r));
    }
    open.push_back(std::move(name));
  }
  return open;
}

}  // namespace hvd
