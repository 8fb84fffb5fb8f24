// SPDX-License-Identifier: Apache-2.0
// The ways that requests go in one process set, and which of them each takes: directly, by the
// board, or between two ranks.
//
// Threads: by the annotations.
#pragma once

#include "absl/status/status.h"
#include "runtime/engine/board_way.h"
#include "runtime/engine/direct/direct_way.h"
#include "runtime/engine/pairs.h"
#include "runtime/engine/request/tensor_places.h"

namespace hvd::rt {

class Ways {
 public:
  // Both are borrowed.
  Ways(EpochWorld* world, WorkNotes* notes);

  DirectWay& direct() { return direct_; }
  BoardWay& board() { return board_; }
  Pairs& pairs() { return pairs_; }
  // Where the host's ranks have their tensors.
  const TensorPlaces& places() const { return places_; }

  // Makes sure that a name cannot be refused once others count on it. Called once a name, and again
  // after its number was given up.
  absl::Status Prepare(LocalName* name, const Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Marks the pending request, directly if it may go so. A rank that is away, since it has joined
  // or left, has told the others so: they would not all see a direct mark of it.
  absl::Status Mark(LocalName* name, bool is_away) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Not all ranks can go directly: this one asks the board like them, where there is room for what
  // was marked directly.
  absl::Status FallBack(LocalName* name, bool is_away) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // Returns the name that an entry of the log is about, once; null: nobody's here. `submissions`:
  // this rank's until now.
  LocalName* Take(const LogEntry& entry, uint64_t submissions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Whether what is pending has been agreed on: it waits for this rank alone.
  bool IsAgreed(const LocalName& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return board_.IsAgreed(name) || direct_.IsAgreed(name);
  }

 private:
  absl::Status MarkOnBoard(LocalName* name, bool is_away)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  const TensorPlaces places_;
  DirectWay direct_;
  BoardWay board_;
  Pairs pairs_;
};

}  // namespace hvd::rt
