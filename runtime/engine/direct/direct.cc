// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/direct.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "runtime/collective/collectives.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/engine/agreement/board/shared_lock.h"

namespace hvd {
namespace {

constexpr uint32_t kBuckets = 1024;
constexpr size_t kNumbers = DirectTicket::kMostNumber + 1;  // from one on
constexpr uint32_t kPlaces = 4;                             // see DirectTicket::line
// Bytes of a tensor in the line of its mark and in the line that the processor fetches along with
// it.
constexpr size_t kBytesInLine = 112;
constexpr size_t kDoneBytes = 128;  // apart from neighbours

size_t RoundUp(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

uint64_t HashText(std::string_view text, uint64_t seed) {
  uint64_t hash = Mix(seed, text.size());
  for (const char c : text) hash = Mix(hash, static_cast<unsigned char>(c));
  return hash;
}

// Never 0 in its low 48 bits.
uint64_t HashOf(const Signature& s) {
  const uint32_t kind = static_cast<uint32_t>(s.kind) | uint32_t{s.refuses_joined} << 16;
  uint64_t hash = Mix(kind, (uint64_t{s.dtype} << 32) | s.op);
  hash = Mix(hash, (static_cast<uint64_t>(s.root) << 32) | static_cast<uint32_t>(s.ndim));
  const bool any_rows = s.kind == RequestKind::kAllgather || s.kind == RequestKind::kAlltoall;
  for (int d = any_rows ? 1 : 0; d < s.ndim; ++d) {
    hash = Mix(hash, static_cast<uint64_t>(s.shape[d]));
  }
  if (s.contents != 0) hash = Mix(hash, s.contents);
  return hash | 1;
}

}  // namespace

struct Direct::Line {
  alignas(128) std::atomic<uint64_t> stamp;
  uint64_t word;
  std::byte tensor[kBytesInLine];
};

struct Direct::Header {
  alignas(64) std::atomic<uint32_t> lock;
  uint32_t used;                // numbers that names have ever had
  uint32_t first_free;          // of those, by Name::next; 0: none
  std::atomic<uint32_t> bound;  // to names, now; changes under the lock
  std::atomic<bool> was_full;   // stays
  struct Name {
    uint64_t hash_a, hash_b;
    uint32_t next;        // in its bucket, or of those that are free
    uint32_t user_count;  // ranks that have asked for it and have not given it up, and which
    uint64_t users[kMaxLocalRanks / 64];
    void Add(int rank) {
      const uint64_t bit = uint64_t{1} << (rank % 64);
      if ((users[rank / 64] & bit) == 0) ++user_count;
      users[rank / 64] |= bit;
    }
  } names[kNames + 1];
  uint32_t buckets[kBuckets];
  // By number: the round, and one, in which the next use goes by the board; 0: none.
  std::atomic<uint64_t> by_board[kNames + 1];
  // How many rounds each rank marks no more in: joins it has called.
  struct alignas(64) Away {
    std::atomic<uint64_t> before_round;
  } away[kMaxLocalRanks];
};

size_t Direct::Bytes(int size) {
  const size_t places = kNumbers * kPlaces * size;
  return RoundUp(sizeof(Header)) + RoundUp(sizeof(Line) * places) + RoundUp(kDoneBytes * places) +
         kMaxBytes * places + kStageStride * size;
}

Direct::Direct(const DirectPlace& place) : place_(place) {
  auto* at = static_cast<std::byte*>(place.memory);
  header_ = reinterpret_cast<Header*>(at);
  lines_ = at + RoundUp(sizeof(Header));
  const size_t places = kNumbers * kPlaces * place.size;
  done_ = lines_ + RoundUp(sizeof(Line) * places);
  slots_ = done_ + RoundUp(kDoneBytes * places);
  stages_ = slots_ + kMaxBytes * places;
}

Direct::Line& Direct::line(const DirectTicket& ticket, int peer) const {
  const size_t place = size_t{ticket.number} * kPlaces + ticket.line();
  return reinterpret_cast<Line*>(lines_)[place * place_.size + peer];
}

std::atomic<uint64_t>& Direct::done(const DirectTicket& ticket, int peer) const {
  const size_t place = size_t{ticket.number} * kPlaces + ticket.line();
  return *reinterpret_cast<std::atomic<uint64_t>*>(
      done_ + (place * place_.size + static_cast<size_t>(peer)) * kDoneBytes);
}

std::byte* Direct::slot(const DirectTicket& ticket, int peer) const {
  const size_t place = size_t{ticket.number} * kPlaces + ticket.line();
  return slots_ + (place * place_.size + peer) * kMaxBytes;
}

Direct::Hashes Direct::HashesOf(std::string_view name) {
  return {HashText(name, 0x243f6a8885a308d3ull), HashText(name, 0x13198a2e03707344ull)};
}

// A name is its two hashes.
uint32_t Direct::FindLocked(const Hashes& name) const {
  uint32_t number = header_->buckets[name.a % kBuckets];
  while (number != 0) {
    const Header::Name& found = header_->names[number];
    if (found.hash_a == name.a && found.hash_b == name.b) break;
    number = found.next;
  }
  return number;
}

uint32_t Direct::BindLocked(const Hashes& name) {
  uint32_t number = header_->first_free;
  if (number != 0) {
    header_->first_free = header_->names[number].next;
  } else if (header_->used < kNames) {
    number = ++header_->used;
  } else {
    return 0;
  }
  uint32_t& bucket = header_->buckets[name.a % kBuckets];
  header_->names[number] = {name.a, name.b, bucket, 0, {}};
  header_->by_board[number].store(0, std::memory_order_relaxed);
  bucket = number;
  header_->bound.fetch_add(1, std::memory_order_relaxed);
  return number;
}

uint32_t Direct::Number(std::string_view name) {
  const Hashes hashes = HashesOf(name);
  SharedLock lock(&header_->lock, place_.page);
  if (!lock.held()) return 0;
  uint32_t number = FindLocked(hashes);
  if (number == 0 && !header_->was_full.load(std::memory_order_relaxed)) {
    number = BindLocked(hashes);
    if (number == 0) header_->was_full.store(true, std::memory_order_relaxed);
  }
  if (number != 0) header_->names[number].Add(place_.index);
  return number;
}

uint32_t Direct::Bind(std::string_view name) {
  if (header_->bound.load(std::memory_order_relaxed) == kNames) return 0;
  const Hashes hashes = HashesOf(name);
  SharedLock lock(&header_->lock, place_.page);
  if (!lock.held()) return 0;
  uint32_t number = FindLocked(hashes);
  if (number == 0) number = BindLocked(hashes);
  for (int rank = 0; number != 0 && rank < place_.size; ++rank) header_->names[number].Add(rank);
  return number;
}

bool Direct::GiveUp(uint32_t number) {
  SharedLock lock(&header_->lock, place_.page);
  if (!lock.held()) return false;
  Header::Name& name = header_->names[number];
  name.users[place_.index / 64] &= ~(uint64_t{1} << (place_.index % 64));
  if (--name.user_count > 0) return false;
  FreeLocked(number);
  return true;
}

// Nobody uses it, so nobody looks at its marks: the next name begins with none.
void Direct::FreeLocked(uint32_t number) {
  Header::Name& name = header_->names[number];
  uint32_t* link = &header_->buckets[name.hash_a % kBuckets];
  while (*link != number) link = &header_->names[*link].next;
  *link = name.next;
  name.next = header_->first_free;
  header_->first_free = number;
  header_->bound.fetch_sub(1, std::memory_order_relaxed);
  for (int peer = 0; peer < place_.size; ++peer) {
    for (const uint64_t round : {0, 1}) ClearMarks(number, round, peer);
  }
}

// Stored only when it changes: all ranks read it at each use.
void Direct::SetByBoard(uint32_t number, uint64_t round, bool by_board) {
  std::atomic<uint64_t>& word = header_->by_board[number];
  const uint64_t value = by_board ? round + 1 : 0;
  if (word.load(std::memory_order_relaxed) != value) word.store(value, std::memory_order_relaxed);
}

bool Direct::IsByBoard(uint32_t number, uint64_t round) const {
  return header_->by_board[number].load(std::memory_order_relaxed) == round + 1;
}

DirectTicket Direct::Latest(uint32_t number, uint64_t round) const {
  uint64_t uses = 0;
  for (const uint64_t count : {0, 1}) {
    const Line& mine = line({number, round, count}, place_.index);
    uses = std::max(uses, mine.stamp.load(std::memory_order_relaxed));
  }
  return uses == 0 ? DirectTicket{number, round - 1, 0} : DirectTicket{number, round, uses - 1};
}

bool Direct::MayGoDirectly(const Signature& s) {
  if (s.group_count != 0 || s.compression != 0 || s.device_type != HVD_CPU) return false;
  if (s.prescale != 1.0 || s.postscale != 1.0) return false;
  switch (s.kind) {
    case RequestKind::kBarrier:
      return true;
    case RequestKind::kAllreduce:
      return s.op != HVD_ADASUM && !(s.dtype == HVD_BOOL && s.op == HVD_AVERAGE);
    case RequestKind::kBroadcast:
      return true;
    case RequestKind::kReduceScatter:
      return !(s.dtype == HVD_BOOL && s.op == HVD_AVERAGE);
    case RequestKind::kAllgather:
    case RequestKind::kAlltoall:
      return s.row_elements() != 0;  // else the rows cannot be told from the bytes
    default:
      return false;
  }
}

uint64_t Direct::WordOf(const Signature& s) {
  if (!MayGoDirectly(s)) return kThroughBoard;
  size_t bytes = 0;
  if (s.kind != RequestKind::kBarrier) {
    const size_t width = DtypeBytes(static_cast<hvd_dtype_t>(s.dtype));
    if (s.rows() > static_cast<int64_t>(kMaxBytes)) return kThroughBoard;
    if (s.row_elements() > kMaxBytes) return kThroughBoard;
    bytes = s.elements() * width;
    if (bytes > kMaxBytes) return kThroughBoard;
  }
  return (HashOf(s) << 16) | bytes;
}

uint64_t Direct::WordInPlace(const Signature& s, bool staged, size_t bytes) {
  uint64_t hash = Mix(HashOf(s), staged ? 0xbe5466cf34e90c6cull : 0x452821e638d01377ull);
  hash = Mix(hash, std::bit_cast<uint64_t>(s.prescale));
  hash = Mix(hash, std::bit_cast<uint64_t>(s.postscale));
  return ((hash | 1) << 16) | bytes;
}

void Direct::PublishDone(const DirectTicket& ticket) {
  done(ticket, place_.index).store(ticket.stamp(), std::memory_order_release);
}

bool Direct::AllDone(const DirectTicket& ticket) const {
  for (int peer = 0; peer < place_.size; ++peer) {
    if (done(ticket, peer).load(std::memory_order_acquire) < ticket.stamp()) return false;
  }
  return true;
}

std::byte* Direct::Room(const DirectTicket& ticket, uint64_t word) {
  return BytesOf(word) <= kBytesInLine ? line(ticket, place_.index).tensor
                                       : slot(ticket, place_.index);
}

void Direct::Publish(const DirectTicket& ticket, uint64_t word) {
  Line& mine = line(ticket, place_.index);
  mine.word = word;
  mine.stamp.store(ticket.stamp(), std::memory_order_release);
}

void Direct::OwnNext(const DirectTicket& ticket, uint64_t word) const {
  DirectTicket next = ticket;
  ++next.count;
  const size_t bytes = BytesOf(word);
  const bool in_line = bytes <= kBytesInLine;
  const Line& mine = line(next, place_.index);
  OwnLines(&mine, offsetof(Line, tensor) + (in_line ? bytes : 0));
  if (!in_line) OwnLines(slot(next, place_.index), bytes);
}

void Direct::Leave(uint64_t round) {
  header_->away[place_.index].before_round.store(round, std::memory_order_release);
}

// Marks that were never used stay untouched.
void Direct::ClearMarks(uint32_t number, uint64_t round, int peer) {
  for (const uint64_t count : {0, 1}) {
    const DirectTicket ticket = {number, round, count};
    std::atomic<uint64_t>& stamp = line(ticket, peer).stamp;
    if (stamp.load(std::memory_order_relaxed) == 0) continue;
    stamp.store(0, std::memory_order_relaxed);
    done(ticket, peer).store(0, std::memory_order_relaxed);
  }
}

void Direct::BeginRound(uint64_t round, uint32_t turns) {
  for (uint32_t turn = 1; turn <= turns; ++turn) {
    ClearMarks(NumberOfTurn(turn), round, place_.index);
  }
  SharedLock lock(&header_->lock, place_.page);
  if (!lock.held()) return;  // there will be no such round
  for (uint32_t number = 1; number <= header_->used; ++number) {
    ClearMarks(number, round, place_.index);
  }
}

Direct::Seen Direct::Look(const DirectTicket& ticket, uint64_t word) const {
  Seen seen = Seen::kAllSame;
  for (int peer = 0; peer < place_.size; ++peer) {
    const Line& theirs = line(ticket, peer);
    if (theirs.stamp.load(std::memory_order_acquire) >= ticket.stamp()) {
      if (theirs.word >> 16 != word >> 16) return Seen::kThroughBoard;
      continue;
    }
    const auto& away = header_->away[peer].before_round;
    if (away.load(std::memory_order_acquire) > ticket.round &&
        theirs.stamp.load(std::memory_order_acquire) < ticket.stamp()) {
      return Seen::kThroughBoard;
    }
    seen = Seen::kNotYet;
  }
  return seen;
}

uint64_t Direct::WordAt(const DirectTicket& ticket, int peer) const {
  return line(ticket, peer).word;
}

const std::byte* Direct::TensorAt(const DirectTicket& ticket, int peer) const {
  const Line& theirs = line(ticket, peer);
  return BytesOf(theirs.word) <= kBytesInLine ? theirs.tensor : slot(ticket, peer);
}

}  // namespace hvd
