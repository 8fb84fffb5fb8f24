// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/direct.h"

#include <algorithm>
#include <cstddef>

#include "runtime/collective/kernels/copy.h"

namespace hvd::rt {
namespace {

constexpr size_t kNumbers = DirectTicket::kMostNumber + 1;  // from one on
constexpr uint32_t kPlaces = 4;                             // see DirectTicket::line
// Bytes of a tensor in the line of its mark and in the line that the processor fetches along with
// it.
constexpr size_t kBytesInLine = 112;
constexpr size_t kDoneBytes = 128;  // apart from neighbours

size_t RoundUp(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

struct Direct::Line {
  alignas(128) std::atomic<uint64_t> stamp;
  uint64_t word;
  std::byte tensor[kBytesInLine];
};

// How many rounds each rank marks no more in: joins it has called.
struct Direct::Header {
  struct alignas(64) Away {
    std::atomic<uint64_t> before_round;
  } away[kMaxLocalRanks];
};

size_t Direct::HeadBytes() { return RoundUp(DirectNumbers::Bytes() + sizeof(Header)); }

size_t Direct::Bytes(int size) {
  const size_t places = kNumbers * kPlaces * size;
  return HeadBytes() + RoundUp(sizeof(Line) * places) + RoundUp(kDoneBytes * places) +
         kMostDirectBytes * places + kStageStride * size;
}

Direct::Direct(const DirectPlace& place) : place_(place), numbers_(place) {
  auto* at = static_cast<std::byte*>(place.memory);
  header_ = reinterpret_cast<Header*>(at + DirectNumbers::Bytes());
  lines_ = at + HeadBytes();
  const size_t places = kNumbers * kPlaces * place.size;
  done_ = lines_ + RoundUp(sizeof(Line) * places);
  slots_ = done_ + RoundUp(kDoneBytes * places);
  stages_ = slots_ + kMostDirectBytes * places;
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
  return slots_ + (place * place_.size + peer) * kMostDirectBytes;
}

// Nobody uses a number that is free, so nobody looks at its marks: the next name begins with none.
bool Direct::GiveUp(uint32_t number) {
  return numbers_.GiveUp(number, [&] {
    for (int peer = 0; peer < place_.size; ++peer) {
      for (const uint64_t round : {0, 1}) ClearMarks(number, round, peer);
    }
  });
}

DirectTicket Direct::Latest(uint32_t number, uint64_t round) const {
  uint64_t uses = 0;
  for (const uint64_t count : {0, 1}) {
    const Line& mine = line({number, round, count}, place_.index);
    uses = std::max(uses, mine.stamp.load(std::memory_order_relaxed));
  }
  return uses == 0 ? DirectTicket{number, round - 1, 0} : DirectTicket{number, round, uses - 1};
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
  return BytesOfDirectWord(word) <= kBytesInLine ? line(ticket, place_.index).tensor
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
  const size_t bytes = BytesOfDirectWord(word);
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
    ClearMarks(DirectNumbers::OfTurn(turn), round, place_.index);
  }
  numbers_.ForEach([&](uint32_t number) { ClearMarks(number, round, place_.index); });
}

Direct::Seen Direct::Look(const DirectTicket& ticket, uint64_t word) const {
  Seen seen = Seen::kAllSame;
  for (int peer = 0; peer < place_.size; ++peer) {
    const Line& theirs = line(ticket, peer);
    if (theirs.stamp.load(std::memory_order_acquire) >= ticket.stamp()) {
      if (!NameTheSame(theirs.word, word)) return Seen::kThroughBoard;
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
  return BytesOfDirectWord(theirs.word) <= kBytesInLine ? theirs.tensor : slot(ticket, peer);
}

}  // namespace hvd::rt
