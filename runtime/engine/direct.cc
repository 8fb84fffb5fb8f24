#include "runtime/engine/direct.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "runtime/collective/collectives.h"
#include "runtime/collective/kernels/own_lines.h"
#include "runtime/engine/shared_lock.h"

namespace hvd {
namespace {

constexpr uint32_t kBuckets = 4 * Direct::kNames;
constexpr uint32_t kPlaces = 4;  // see DirectTicket::line
// Of a tensor in the line of its mark, and in the line that the processor fetches along with it.
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
  uint64_t hash = Mix(static_cast<uint64_t>(s.kind), (uint64_t{s.dtype} << 32) | s.op);
  hash = Mix(hash, (static_cast<uint64_t>(s.root) << 32) | static_cast<uint32_t>(s.ndim));
  const bool any_rows = s.kind == RequestKind::kAllgather || s.kind == RequestKind::kAlltoall;
  for (int d = any_rows ? 1 : 0; d < s.ndim; ++d) {
    hash = Mix(hash, static_cast<uint64_t>(s.shape[d]));
  }
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
  uint32_t used;
  struct Name {
    uint64_t hash_a, hash_b;
    uint32_t number;
  } names[kBuckets];
  // How many rounds each rank marks no more in: joins it has called.
  struct alignas(64) Away {
    std::atomic<uint32_t> before_round;
  } away[kMaxLocalRanks];
};

size_t Direct::Bytes(int size) {
  const size_t places = size_t{kNames + 1} * kPlaces * size;
  return RoundUp(sizeof(Header)) + RoundUp(sizeof(Line) * places) + RoundUp(kDoneBytes * places) +
         kMaxBytes * places + kStageStride * size;
}

Direct::Direct(const DirectPlace& place) : place_(place) {
  auto* at = static_cast<std::byte*>(place.memory);
  header_ = reinterpret_cast<Header*>(at);
  lines_ = at + RoundUp(sizeof(Header));
  const size_t places = size_t{kNames + 1} * kPlaces * place.size;
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

uint32_t Direct::Number(std::string_view name) {
  SharedLock lock(&header_->lock, place_.page);
  return lock.held() ? NumberLocked(name) : 0;
}

// A name is its two hashes; the table never forgets one, so that all ranks find the same.
uint32_t Direct::NumberLocked(std::string_view name) {
  const uint64_t hash_a = HashText(name, 0x243f6a8885a308d3ull) | 1;  // 0: an empty place
  const uint64_t hash_b = HashText(name, 0x13198a2e03707344ull);
  for (uint32_t at = hash_a % kBuckets;; at = (at + 1) % kBuckets) {
    Header::Name& found = header_->names[at];
    if (found.hash_a == hash_a && found.hash_b == hash_b) return found.number;
    if (found.hash_a != 0) continue;
    if (header_->used == kNames) return 0;
    found = {hash_a, hash_b, ++header_->used};
    return found.number;
  }
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

void Direct::Leave(uint32_t round) {
  header_->away[place_.index].before_round.store(round, std::memory_order_release);
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
