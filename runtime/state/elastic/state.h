// SPDX-License-Identifier: Apache-2.0
// What is behind hvd_state_*: a program's entries, and what commits, restores and syncs do with
// them.
//
// Threads: any, one at a time (StateHome's mutex, which its functions take).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/sets/process_sets.h"
#include "runtime/state/elastic/image.h"
#include "runtime/state/entries.h"
#include "runtime/state/state_home.h"

namespace hvd::rt {

// The process's; they outlive it.
struct StateParts {
  StateHome* home = nullptr;
  ProcessSets* sets = nullptr;
  Gpus* gpus = nullptr;
};

class State {
 public:
  explicit State(const StateParts& parts)
      : home_(parts.home), sets_(*parts.sets), bytes_(parts.gpus) {}

  // Under the home's mutex.
  StateEntries& entries() { return entries_; }
  const StateEntries& entries() const { return entries_; }

  // The C ABI's codes; the message is the thread's last error.
  hvd_status_t Commit(CommitBy by, uint64_t* number);
  hvd_status_t Restore(uint64_t* number);
  hvd_status_t Sync();

 private:
  // `before`: what has gone wrong already; then this rank only says that it cannot commit.
  hvd_status_t CommitLocked(CommitBy by, const absl::Status& before)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(home_->mutex());
  struct Written {
    uint64_t layout = 0;
    int cell = -1;  // of the host's file; below 0: nothing was begun
  };
  absl::Status Write(CommitBy by, Written* written) ABSL_EXCLUSIVE_LOCKS_REQUIRED(home_->mutex());
  void TakeBack(uint64_t number, const Written& written)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(home_->mutex());
  absl::Status RestoreLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(home_->mutex());

  StateHome* const home_;
  ProcessSets& sets_;
  const TensorCopies bytes_;
  StateEntries entries_;
};

// The root's state to the needy: this rank is one of them, or the root. Collective among these.
// `before`: what has gone wrong on this rank already; then nothing is brought, to nobody.
// *from: what this rank goes on from; becomes the root's. InvalidArgument and FailedPrecondition:
// what was added does not fit. After an error the entries' contents are undefined.
struct GoesOnFrom {
  uint64_t commit = 0;
  uint64_t steps = 0;  // CommitBook::steps
};
struct Bringing {
  const EpochState& epoch;
  ProcessSets& sets;
  const ImageOf& of;
};
absl::Status BringState(const Bringing& bringing, const absl::Status& before, GoesOnFrom* from);

// Returns what tells this place of a program's course from others, made of its integers and bytes
// that all ranks have alike. 0: it has none. Floats are no help: they come out differently each
// time.
uint64_t PlaceOf(const StateEntries& entries, const StateLayout& layout);

}  // namespace hvd::rt
