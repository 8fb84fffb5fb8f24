// SPDX-License-Identifier: Apache-2.0
// The short way on one host, without the board and its log.
//
// Small tensors: every rank writes its tensor beside its mark and reads the others' when all have
// marked: one exchange of cache lines. Tensors in place: the marks say where they lie, in the
// arenas or in the rank's stage, each rank does its part (it sums its slice in everyone's buffers,
// or fetches what it needs of them), says that it has, and is done when all have. Nobody ever waits
// inside, so requests may be marked in any order.
//
// A mark says either "this tensor, here it is" or "I go through the board". When all marks of a
// generation are the first kind and of the same request, each rank computes the result by itself,
// in rank order, so all get the same bits. Otherwise every rank sees that they are not, and all of
// them go through the board, which knows how to say what differs. A rank that has joined or left
// counts as one that goes through the board.
//
// A generation's marks lie in a place of their own until every rank has seen them: a rank marks
// generation g + 2 only after all have marked g + 1, and nobody marks g + 1 before it has read all
// of g. Where joins make ranks skip generations they begin anew, in places of their own that hold
// no mark yet: see BeginRound. A generation is therefore a plain count of 64 bits, and no mark is
// ever older than it looks.
//
// Threads: whoever runs the engine, or under its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/engine/direct/numbers.h"
#include "runtime/engine/direct/words.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {

class Direct {
 public:
  static size_t Bytes(int size);
  explicit Direct(const DirectPlace& place);

  // Who has a number.
  DirectNumbers& numbers() { return numbers_; }
  const DirectNumbers& numbers() const { return numbers_; }
  // REQUIRES: this rank has the number, and no use of it pending. True: it was the last; the number
  // may be another's from now on.
  bool GiveUp(uint32_t number);
  // Returns the ticket of this rank's latest use of it in `round`; one of another round when there
  // was none.
  DirectTicket Latest(uint32_t number, uint64_t round) const;

  // Where a rank shows the others a tensor of its private memory, one at a time. A larger tensor
  // would leave the caches, and goes better in pieces (collective/). (Measured with 4 MB: two ranks
  // gain up to a tenth, four lose a third.)
  static constexpr size_t kStageBytes = size_t{1} << 20;
  // Not a multiple of a page: see HostRegion.
  static constexpr size_t kStageStride = kStageBytes + 256;
  // Begins as far into a cache line as the rank's tensor, `skew` bytes: what is copied or summed
  // then lies alike on both sides, and no vector of either crosses a line.
  std::byte* Stage(int peer, uint64_t skew) const {
    return stages_ + kStageStride * peer + skew % kLine;
  }
  static uint64_t SkewOf(const void* tensor) { return reinterpret_cast<uintptr_t>(tensor) % kLine; }

  // Where this rank's tensor is to be written, and the mark published afterwards.
  std::byte* Room(const DirectTicket& ticket, uint64_t word);
  void Publish(const DirectTicket& ticket, uint64_t word);
  // Takes the lines of this name's next mark, if that will be like this one, ahead of time.
  void OwnNext(const DirectTicket& ticket, uint64_t word) const;
  // This rank marks nothing more until `round` joins are completed.
  void Leave(uint64_t round);
  // Takes this rank's marks of the round before the last away from where those of `round` will be.
  // `turns`: so many were ever used. REQUIRES: this rank has not joined yet to end the round before
  // `round`: so nobody is in `round`, and all are through with the one that ended two joins
  // earlier.
  void BeginRound(uint64_t round, uint32_t turns);

  enum class Seen { kNotYet, kAllSame, kThroughBoard };
  Seen Look(const DirectTicket& ticket, uint64_t word) const;
  // After kAllSame.
  uint64_t WordAt(const DirectTicket& ticket, int peer) const;
  const std::byte* TensorAt(const DirectTicket& ticket, int peer) const;

  // This rank has done its part of a tensor in place; and whether all have.
  void PublishDone(const DirectTicket& ticket);
  bool AllDone(const DirectTicket& ticket) const;

  int index() const { return place_.index; }
  int size() const { return place_.size; }

 private:
  static constexpr size_t kLine = 64;
  struct Line;
  struct Header;
  void ClearMarks(uint32_t number, uint64_t round, int peer);
  std::atomic<uint64_t>& done(const DirectTicket& ticket, int peer) const;
  Line& line(const DirectTicket& ticket, int peer) const;
  std::byte* slot(const DirectTicket& ticket, int peer) const;
  static size_t HeadBytes();

  const DirectPlace place_;
  DirectNumbers numbers_;
  Header* header_;
  std::byte* lines_;
  std::byte* done_;
  std::byte* slots_;
  std::byte* stages_;
};

}  // namespace hvd::rt
