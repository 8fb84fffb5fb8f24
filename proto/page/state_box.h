// SPDX-License-Identifier: Apache-2.0
// The beginning of a state file: who of a host has written which commit into it. Two such files
// take a host's commits by turns, so the one before lies untouched while the next is written. The
// ranks write, hvdd reads: a commit outlives the ranks that have written it.
//
// A rank that writes a commit takes its old word back first, writes its share of the bytes, and
// says so last. A commit that is complete was therefore written by everybody.
#pragma once

#include <atomic>
#include <cstdint>

#include "proto/page/host_page.h"

namespace hvd {

// Written by one local rank alone.
struct StateCell {
  alignas(64) std::atomic<uint64_t> number{0};  // of the commit; 0: nothing, or being written
  std::atomic<uint64_t> epoch{0};               // in which it was written
  std::atomic<uint64_t> layout{0};              // what lies where, as a hash: the same for all
  std::atomic<uint32_t> local_size{0};          // so many cells belong to it
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> place{0};
};

struct StateHead {
  StateCell cells[kMaxLocalRanks];  // by local rank
};
// The contents that the cells tell of lie behind this; a file that is empty, or shorter, holds
// nothing.
inline constexpr uint64_t kStateContentsAt = (sizeof(StateHead) + 4095) / 4096 * 4096;

struct StateWord {
  uint64_t number = 0;
  uint64_t epoch = 0;
  uint64_t layout = 0;
  uint32_t local_size = 0;
  // How far the program is: so many of its own commits led here, those that a sync makes apart, and
  // what tells this place of its course from others (0: nothing does).
  uint64_t steps = 0;
  uint64_t place = 0;
};

// Before a local rank writes its bytes, and after it has.
void BeginState(StateCell* cell);
void EndState(StateCell* cell, const StateWord& word);

// The commit that all of its ranks have written; number 0: there is none.
StateWord CompleteState(const StateHead& head);
// Which commits a host has complete, in its two files; 0: none.
struct KeptCommits {
  uint64_t newest = 0;
  uint64_t before = 0;
  uint64_t steps = 0, place = 0;  // of the newest
  bool Has(uint64_t number) const { return number != 0 && (number == newest || number == before); }
};
KeptCommits KeptIn(const StateHead* one, const StateHead* other);  // null: nothing

// Forgets a commit whose number is beyond `newest`. REQUIRES: nobody writes.
void VoidStateBeyond(StateHead* head, uint64_t newest);

}  // namespace hvd
