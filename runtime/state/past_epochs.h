// SPDX-License-Identifier: Apache-2.0
// What this process has lived through, and so what an epoch wants of the program's state where no
// driver says it.
//
// Threads: one at a time.
#pragma once

#include <cstdint>

#include "runtime/session/link_words.h"
#include "runtime/state/state_home.h"

namespace hvd::rt {

// An epoch as this process has joined it.
struct JoinedAs {
  uint64_t number = 0;  // the driver's; 0: there is none, and this process counts itself
  int rank = 0;
  int size = 1;
};

class PastEpochs {
 public:
  // Returns what the epoch that begins wants. `words`: the driver's, in an elastic job; null: it
  // is none, and rank 0's state is everybody's.
  EpochState Describe(const JoinedAs& shape, const StateWords* words) const;
  void NoteBegun() {
    ++count_;
    has_broken_ = false;
  }
  void NoteEnded(bool has_broken) { has_broken_ = has_broken; }

 private:
  uint64_t count_ = 0;
  bool has_broken_ = false;  // the last one
};

}  // namespace hvd::rt
