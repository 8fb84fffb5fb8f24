// SPDX-License-Identifier: Apache-2.0
// The numbers of names that go directly, in the memory of a host's ranks: who has one, and whose
// next use goes by the board all the same.
//
// Threads: Number and Bind from any; the rest from whoever runs the engine, or under its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "proto/page/host_page.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {

struct DirectPlace {
  HostPage* page = nullptr;
  void* memory = nullptr;  // Direct::Bytes(size); zeroed at first. The numbers come first
  int index = 0;           // of this rank among the set's ranks here
  int size = 1;
};

class DirectNumbers {
 public:
  static constexpr uint32_t kNames = 768;  // that have a number at one time
  static constexpr uint32_t kTurns = 256;  // of unnamed calls, which have theirs for good
  static_assert(kNames + kTurns == DirectTicket::kMostNumber);

  static size_t Bytes();
  explicit DirectNumbers(const DirectPlace& place)
      : place_(place), table_(static_cast<Table*>(place.memory)) {}

  // A name has the same number on all ranks, or none on any. As long as there are free ones,
  // whoever asks first gives it one. Once there were none, ranks ask at different times, so names
  // get one only where all agree on it: with a use that goes by the board, by whoever completes
  // that (Bind, for all). A name loses its number when all ranks that have it have given it up. A
  // rank asks before its first use, and again after it has given the number up: then it has it
  // still, unless all had.
  //
  // All ranks therefore find the same number for each use. All have given a number up only when
  // nobody has a use pending, that is, when all have made as many uses; then nobody gets it back
  // but by a use of all.
  uint32_t Number(std::string_view name);  // 0: none
  uint32_t Bind(std::string_view name);    // 0: all are taken
  // REQUIRES: this rank has the number, and no use of it pending. True: it was the last, and the
  // number may be another's once `on_free` has been called.
  bool GiveUp(uint32_t number, absl::FunctionRef<void()> on_free);
  // Calls it with every number that a name has ever had, while nobody gets one. Not once the epoch
  // has ended.
  void ForEach(absl::FunctionRef<void(uint32_t)> call) const;
  // The next use of the name in this round goes by the board, and nobody marks it directly; or it
  // does again. Each rank says so when it executes a use that went by the board, and all say the
  // same, so that none waits for a mark which another does not make. (In shared memory: a rank may
  // have forgotten the name when it comes again.)
  void SetByBoard(uint32_t number, uint64_t round, bool by_board);
  bool IsByBoard(uint32_t number, uint64_t round) const;
  // A turn's, counted from one.
  static uint32_t OfTurn(uint32_t turn) { return kNames + turn; }

 private:
  struct Table;
  struct Hashes {
    uint64_t a, b;
  };
  static Hashes HashesOf(std::string_view name);
  uint32_t FindLocked(const Hashes& name) const;
  uint32_t BindLocked(const Hashes& name);
  void FreeLocked(uint32_t number);

  const DirectPlace place_;
  Table* const table_;
};

}  // namespace hvd::rt
