#include "runtime/engine/board.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "runtime/collective/collectives.h"

namespace hvd {
namespace {

constexpr uint32_t kBuckets = 16384;
constexpr uint32_t kNone = 0;  // numbers start at 1, so zeroed memory is an empty board
constexpr uint32_t kNameKept = 192;
constexpr uint32_t kLeftFlag = 0x80000000u;  // in an outbox word: the rest is a local rank
constexpr size_t kTextBytes = 1536;

size_t RoundUp(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

uint64_t HashName(std::string_view name, uint64_t seed) {
  uint64_t hash = seed ^ name.size();
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}
constexpr uint64_t kSeedA = 0x243f6a8885a308d3ull;
constexpr uint64_t kSeedB = 0x13198a2e03707344ull;

uint64_t TensorBytes(const Signature& signature) {
  const bool none =
      signature.kind == RequestKind::kBarrier || signature.kind == RequestKind::kLeave;
  return none ? 0 : signature.elements() * DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype));
}

}  // namespace

struct Board::Header {
  alignas(64) std::atomic<uint32_t> lock;
  uint32_t used;        // entries ever taken, 1..used
  uint32_t clock_hand;  // where the search for an idle entry goes on
  uint32_t left_count;
  int32_t left_rank;  // a global rank that has left, valid when left_count > 0
  alignas(64) std::atomic<uint64_t> log_end;  // entries appended
  // Bytes of the tensors ever appended, and of those closed.
  std::atomic<uint64_t> appended_bytes, closed_bytes;
  alignas(64) std::atomic<uint64_t> outbox_end;  // words pushed
  std::atomic<uint64_t> outbox_begin;            // words taken; the leader's
  struct alignas(64) Position {
    std::atomic<uint64_t> executed;
  } positions[kMaxLocalRanks];
  uint32_t buckets[kBuckets];
  // Each number is in flight once at most, and each local rank leaves once.
  std::atomic<uint32_t> outbox[kEntries + 2 * kMaxLocalRanks];
};

struct Board::Entry {
  uint32_t next;  // in its bucket
  uint32_t bucket;
  uint64_t hash_b;  // second hash of the whole name: stands for what exceeds kNameKept
  uint32_t name_length;
  uint32_t arrived_count;
  uint32_t run;           // completions; its parity says which marks are this run's
  uint64_t last_log_end;  // log position after its last run
  bool in_flight;         // reported, not decided
  bool mismatch;
  int32_t first_rank, other_rank;  // global
  uint64_t arrived[kMaxLocalRanks / 64];
  Signature first, other;
  Signature agreed;  // of the last run
  char name[kNameKept];
};

struct alignas(64) Board::LogSlot {
  uint32_t number;
  uint32_t run;
  bool has_error;
  bool has_rows;
  bool has_buffers;
  int32_t contributors;
  int64_t result;
  uint64_t bytes;
};

// What one rank marked. There are two a number and rank: a rank may mark the next run while another
// still reads this one, but not the one after.
struct Board::MarkSlot {
  int64_t rows;
  HostBuffers buffers;
};

// Spins with yields: a holder may have lost its core when there are more ranks than cores.
class Board::Lock {
 public:
  explicit Lock(const Board& board) : word_(board.header_->lock) {
    for (int spins = 0; word_.exchange(1, std::memory_order_acquire) != 0; ++spins) {
      while (word_.load(std::memory_order_relaxed) != 0) {
        if (++spins % 64 == 0) {
          sched_yield();
          if (board.place_.page->aborted.load(std::memory_order_acquire) != 0) return;
        }
        __builtin_ia32_pause();
      }
    }
    held_ = true;
  }
  ~Lock() {
    if (held_) word_.store(0, std::memory_order_release);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const { return held_; }  // false: the epoch is aborted

 private:
  std::atomic<uint32_t>& word_;
  bool held_ = false;
};

namespace {

absl::Status Aborted(const HostPage* page) { return absl::AbortedError(page->abort_text); }

}  // namespace

size_t Board::Bytes(int local_size, int world_size) {
  return RoundUp(sizeof(Header)) + RoundUp(sizeof(Entry) * (kEntries + 1)) +
         RoundUp(sizeof(MarkSlot) * 2 * local_size * (kEntries + 1)) +
         RoundUp(sizeof(LogSlot) * kEntries) + RoundUp(sizeof(uint64_t) * kEntries) +
         RoundUp(sizeof(int64_t) * world_size * kEntries) + RoundUp(kTextBytes * kEntries);
}

Board::Board(const BoardPlace& place) : place_(place) {
  std::byte* at = static_cast<std::byte*>(place.memory);
  const auto take = [&at](size_t bytes) {
    std::byte* here = at;
    at += RoundUp(bytes);
    return here;
  };
  header_ = reinterpret_cast<Header*>(take(sizeof(Header)));
  entries_ = take(sizeof(Entry) * (kEntries + 1));
  marks_ = take(sizeof(MarkSlot) * 2 * place.local_size * (kEntries + 1));
  log_ = take(sizeof(LogSlot) * kEntries);
  batch_ends_ = take(sizeof(uint64_t) * kEntries);
  log_rows_ = take(sizeof(int64_t) * place.world_size * kEntries);
  log_text_ = take(kTextBytes * kEntries);
}

Board::Entry& Board::entry(uint32_t number) const {
  return reinterpret_cast<Entry*>(entries_)[number];
}
Board::MarkSlot* Board::marks(uint32_t number, uint32_t run) const {
  return reinterpret_cast<MarkSlot*>(marks_) +
         (static_cast<size_t>(number) * 2 + run % 2) * place_.local_size;
}
std::atomic<uint64_t>& Board::batch_end(uint64_t batch) const {
  return reinterpret_cast<std::atomic<uint64_t>*>(batch_ends_)[batch % kEntries];
}
Board::LogSlot& Board::log_slot(uint64_t seq) const {
  return reinterpret_cast<LogSlot*>(log_)[seq % kEntries];
}
int64_t* Board::log_rows(uint64_t seq) const {
  return reinterpret_cast<int64_t*>(log_rows_) + (seq % kEntries) * place_.world_size;
}
char* Board::log_text(uint64_t seq) const {
  return reinterpret_cast<char*>(log_text_) + (seq % kEntries) * kTextBytes;
}

bool Board::IsIdle(const Entry& entry) const {
  if (entry.arrived_count != 0 || entry.in_flight) return false;
  for (int r = 0; r < place_.local_size; ++r) {
    const auto& executed = header_->positions[r].executed;
    if (executed.load(std::memory_order_acquire) < entry.last_log_end) return false;
  }
  return true;
}

void Board::Unlink(uint32_t number) {
  uint32_t* link = &header_->buckets[entry(number).bucket];
  while (*link != number) link = &entry(*link).next;
  *link = entry(number).next;
}

uint32_t Board::TakeIdleEntry() {
  if (header_->used < kEntries) return ++header_->used;
  for (uint32_t tried = 0; tried < kEntries; ++tried) {
    header_->clock_hand = header_->clock_hand % kEntries + 1;
    if (IsIdle(entry(header_->clock_hand))) {
      Unlink(header_->clock_hand);
      return header_->clock_hand;
    }
  }
  return kNone;
}

absl::StatusOr<uint32_t> Board::FindOrCreate(std::string_view name) {
  const uint32_t bucket = HashName(name, kSeedA) % kBuckets;
  const uint64_t hash_b = HashName(name, kSeedB);
  const std::string_view kept = name.substr(0, kNameKept);
  for (uint32_t n = header_->buckets[bucket]; n != kNone; n = entry(n).next) {
    const Entry& found = entry(n);
    if (found.hash_b == hash_b && found.name_length == name.size() &&
        std::memcmp(found.name, kept.data(), kept.size()) == 0) {
      return n;
    }
  }
  const uint32_t number = TakeIdleEntry();
  if (number == kNone) {
    return absl::ResourceExhaustedError("more than " + std::to_string(kEntries) +
                                        " tensors are pending at once; wait for some of them");
  }
  Entry& made = entry(number);
  made = Entry{};
  made.hash_b = hash_b;
  made.name_length = static_cast<uint32_t>(name.size());
  std::memcpy(made.name, kept.data(), kept.size());
  made.bucket = bucket;
  made.next = header_->buckets[bucket];
  header_->buckets[bucket] = number;
  return number;
}

absl::StatusOr<uint32_t> Board::Mark(std::string_view name, const MarkValue& value) {
  const Signature& signature = value.signature;
  Lock lock(*this);
  if (!lock.held()) return Aborted(place_.page);
  if (header_->left_count > 0 && signature.kind != RequestKind::kLeave) {
    return AbortLeft(header_->left_rank, name);
  }
  const absl::StatusOr<uint32_t> number = FindOrCreate(name);
  if (!number.ok()) return number;
  Entry& marked = entry(*number);
  const int rank = place_.first_rank + place_.local_rank;
  if (marked.arrived_count == 0) {
    marked.first = signature;
    marked.first_rank = rank;
    marked.mismatch = false;
  } else if (!marked.mismatch && !Compatible(marked.first, signature)) {
    marked.mismatch = true;
    marked.other = signature;
    marked.other_rank = rank;
  }
  marks(*number, marked.run)[place_.local_rank] = {signature.rows(),
                                                   {value.input_at, value.output_at}};
  marked.arrived[place_.local_rank / 64] |= 1ull << (place_.local_rank % 64);
  if (++marked.arrived_count == static_cast<uint32_t>(place_.local_size)) Complete(*number);
  return number;
}

// Under the lock. Everyone here has marked the entry.
void Board::Complete(uint32_t number) {
  Entry& completed = entry(number);
  completed.arrived_count = 0;
  std::fill(std::begin(completed.arrived), std::end(completed.arrived), 0);
  if (place_.several_hosts) {
    completed.in_flight = true;
    PushOutbox(number);
    return;
  }
  LogEntry agreed;
  agreed.number = number;
  agreed.signature = completed.first;
  agreed.contributors = place_.local_size;
  if (completed.mismatch) {
    agreed.error = MismatchText({completed.name, std::min(completed.name_length, kNameKept)},
                                {completed.first_rank, completed.first},
                                {completed.other_rank, completed.other});
  } else if (completed.first.kind == RequestKind::kAllgather) {
    for (int r = 0; r < place_.local_size; ++r) {
      agreed.rows.push_back(marks(number, completed.run)[r].rows);
    }
  }
  AppendLocked(agreed);
}

void Board::PushOutbox(uint32_t word) {
  const uint64_t end = header_->outbox_end.load(std::memory_order_relaxed);
  header_->outbox[end % std::size(header_->outbox)].store(word, std::memory_order_relaxed);
  header_->outbox_end.store(end + 1, std::memory_order_release);
}

// Under the lock. A log as long as there are numbers never has to wait for a reader: a number
// completes again only after every local rank has executed it.
void Board::AppendLocked(const LogEntry& agreed) {
  const uint64_t seq = header_->log_end.load(std::memory_order_relaxed);
  Entry& done = entry(agreed.number);
  LogSlot& slot = log_slot(seq);
  slot.number = agreed.number;
  slot.run = done.run;
  slot.has_error = !agreed.error.empty();
  slot.has_rows = !agreed.rows.empty();
  slot.has_buffers = true;
  for (int r = 0; r < place_.local_size; ++r) {
    const HostBuffers& buffers = marks(agreed.number, done.run)[r].buffers;
    slot.has_buffers = slot.has_buffers && buffers.input_at >= 0 && buffers.output_at >= 0;
  }
  slot.contributors = agreed.contributors;
  slot.result = agreed.result;
  slot.bytes = slot.has_error ? 0 : TensorBytes(agreed.signature);
  if (slot.has_error) {
    char* text = log_text(seq);
    const size_t length = std::min(agreed.error.size(), kTextBytes - 1);
    std::memcpy(text, agreed.error.data(), length);
    text[length] = 0;
  }
  if (slot.has_rows) std::copy(agreed.rows.begin(), agreed.rows.end(), log_rows(seq));
  done.in_flight = false;
  done.agreed = agreed.signature;
  ++done.run;
  done.last_log_end = seq + 1;
  header_->appended_bytes.fetch_add(slot.bytes, std::memory_order_relaxed);
  header_->log_end.store(seq + 1, std::memory_order_release);
}

bool Board::HasNext() const {
  return batch_end(next_batch_).load(std::memory_order_acquire) > next_;
}

LogEntry Board::ReadLog(uint64_t seq) const {
  const LogSlot& slot = log_slot(seq);
  LogEntry agreed;
  agreed.number = slot.number;
  agreed.signature = entry(slot.number).agreed;
  agreed.contributors = slot.contributors;
  agreed.result = slot.result;
  if (slot.has_error) agreed.error = log_text(seq);
  if (slot.has_rows) agreed.rows.assign(log_rows(seq), log_rows(seq) + place_.world_size);
  if (slot.has_buffers) {
    for (int r = 0; r < place_.local_size; ++r) {
      agreed.host_buffers.push_back(marks(slot.number, slot.run)[r].buffers);
    }
  }
  return agreed;
}

std::vector<LogEntry> Board::NextBatch() const {
  std::vector<LogEntry> batch;
  const uint64_t end = batch_end(next_batch_).load(std::memory_order_acquire);
  for (uint64_t seq = next_; seq < end; ++seq) batch.push_back(ReadLog(seq));
  return batch;
}

void Board::Advance() {
  next_ = batch_end(next_batch_).load(std::memory_order_acquire);
  ++next_batch_;
  header_->positions[place_.local_rank].executed.store(next_, std::memory_order_release);
}

// Where the open batch begins; `batch` becomes its index. Ends grow along the ring, so one that
// does not is from the ring's last turn, and that batch is still open.
uint64_t Board::FindOpen(uint64_t* batch) const {
  uint64_t begin = next_;
  *batch = next_batch_;
  for (;;) {
    const uint64_t end = batch_end(*batch).load(std::memory_order_acquire);
    if (end <= begin) return begin;
    begin = end;
    ++*batch;
  }
}

bool Board::HasOpen() const {
  uint64_t batch = 0;
  return header_->log_end.load(std::memory_order_acquire) > FindOpen(&batch);
}

size_t Board::open_bytes() const {
  const uint64_t closed = header_->closed_bytes.load(std::memory_order_relaxed);
  return header_->appended_bytes.load(std::memory_order_relaxed) - closed;
}

void Board::Close() {
  if (!place_.several_hosts) CloseAt(header_->log_end.load(std::memory_order_acquire));
}

void Board::CloseAt(uint64_t end) {
  uint64_t batch = 0;
  const uint64_t begin = FindOpen(&batch);
  if (end <= begin) return;
  uint64_t bytes = 0;
  for (uint64_t seq = begin; seq < end; ++seq) bytes += log_slot(seq).bytes;
  uint64_t stale = batch_end(batch).load(std::memory_order_relaxed);
  if (stale > begin || !batch_end(batch).compare_exchange_strong(stale, end)) return;
  header_->closed_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

bool Board::HasOutbox() const {
  return header_->outbox_end.load(std::memory_order_acquire) !=
         header_->outbox_begin.load(std::memory_order_relaxed);
}

std::optional<OutboxEntry> Board::TakeOutbox() {
  if (!HasOutbox()) return std::nullopt;
  Lock lock(*this);
  if (!lock.held()) return std::nullopt;
  const uint64_t begin = header_->outbox_begin.load(std::memory_order_relaxed);
  const uint32_t word =
      header_->outbox[begin % std::size(header_->outbox)].load(std::memory_order_relaxed);
  OutboxEntry taken;
  if ((word & kLeftFlag) != 0) {
    taken.is_left = true;
    taken.left_rank = place_.first_rank + static_cast<int>(word & ~kLeftFlag);
  } else {
    const Entry& completed = entry(word);
    taken.number = word;
    taken.name.assign(completed.name, std::min(completed.name_length, kNameKept));
    // What was cut from a long name still has to tell names apart at the root.
    if (completed.name_length > kNameKept) taken.name += "#" + std::to_string(completed.hash_b);
    taken.first = {completed.first_rank, completed.first};
    if (completed.mismatch) taken.other = Asker{completed.other_rank, completed.other};
    for (int r = 0; r < place_.local_size; ++r) {
      taken.rows.push_back(marks(word, completed.run)[r].rows);
    }
  }
  header_->outbox_begin.store(begin + 1, std::memory_order_release);
  return taken;
}

absl::Status Board::Append(absl::Span<const LogEntry> batch) {
  Lock lock(*this);
  if (!lock.held()) return Aborted(place_.page);
  for (const LogEntry& agreed : batch) AppendLocked(agreed);
  CloseAt(header_->log_end.load(std::memory_order_relaxed));
  return absl::OkStatus();
}

// Under the lock, or after the epoch is broken anyway.
absl::Status Board::AbortLeft(int left_rank, std::string_view waiting_for) {
  const std::string cause = "rank " + std::to_string(left_rank) +
                            " has left the job (hvd_shutdown) while other ranks wait for it in '" +
                            std::string(waiting_for) + "'";
  AbortEpoch(place_.page, cause.c_str(), place_.event_fds);
  return Aborted(place_.page);
}

absl::Status Board::NoteLeft() {
  Lock lock(*this);
  if (!lock.held()) return Aborted(place_.page);
  ++header_->left_count;
  header_->left_rank = place_.first_rank + place_.local_rank;
  for (uint32_t n = 1; n <= header_->used; ++n) {
    const Entry& open = entry(n);
    const bool mine = (open.arrived[place_.local_rank / 64] >> (place_.local_rank % 64)) & 1;
    if (open.arrived_count > 0 && !mine && open.first.kind != RequestKind::kLeave) {
      return AbortLeft(header_->left_rank, {open.name, std::min(open.name_length, kNameKept)});
    }
  }
  if (place_.several_hosts) PushOutbox(kLeftFlag | static_cast<uint32_t>(place_.local_rank));
  return absl::OkStatus();
}

absl::Status Board::NoteLeftElsewhere(int rank) {
  Lock lock(*this);
  if (!lock.held()) return Aborted(place_.page);
  ++header_->left_count;
  header_->left_rank = rank;
  for (uint32_t n = 1; n <= header_->used; ++n) {
    const Entry& open = entry(n);
    if ((open.arrived_count > 0 || open.in_flight) && open.first.kind != RequestKind::kLeave) {
      return AbortLeft(rank, {open.name, std::min(open.name_length, kNameKept)});
    }
  }
  return absl::OkStatus();
}

}  // namespace hvd
