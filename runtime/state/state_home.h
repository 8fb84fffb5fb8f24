// SPDX-License-Identifier: Apache-2.0
// What outlives a program's State object: where its commits are kept, which is the newest, and what
// the epoch wants of it. One in a process.
//
// Threads: any; whoever uses it holds its mutex, which is held during a commit or a sync as well.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "hvd/hvd.h"
#include "runtime/state/commit_book.h"
#include "runtime/state/state_files.h"

namespace hvd::rt {

// The part of the state that an epoch brings.
struct EpochState {
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  std::vector<int> needy;  // ranks, ascending
  bool is_elastic = false;
  std::vector<Descriptor> files;  // hvdd's; none: commits are kept in own memory
};

class StateHome {
 public:
  // At the beginning of an epoch, and before this process leaves it: afterwards nothing here writes
  // into what the epoch has brought. End waits for a commit under way, which has been ended.
  void BeginEpoch(EpochState state);
  void EndEpoch();
  // The newest commit that is complete everywhere. Any thread, without the mutex.
  uint64_t newest() const { return newest_.load(); }

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  const EpochState& state() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return state_; }
  bool in_epoch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return in_epoch_; }
  // Returns this process's files, as hvdd or the process itself keeps them.
  absl::StatusOr<StateFiles*> Files() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const CommitBook& book() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return book_; }
  void Hear(const Agreement& agreement, CommitBy by) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GoOnFrom(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How far the program was with the newest commit, where that is not in a file here.
  void LearnSteps(uint64_t steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { book_.Learn(steps); }
  // How far it was, as the commit itself says where it is kept.
  uint64_t Steps() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Commits are kept in this process's own memory: it is the only one that writes them.
  bool keeps_own() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return keeps_own_; }
  // This epoch's going back has been done.
  bool has_gone_back() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return has_gone_back_; }
  void NoteGoneBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { has_gone_back_ = true; }

 private:
  Mutex mutex_;
  bool keeps_own_ ABSL_GUARDED_BY(mutex_) = true;
  bool in_epoch_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_gone_back_ ABSL_GUARDED_BY(mutex_) = false;
  EpochState state_ ABSL_GUARDED_BY(mutex_);
  StateFiles epochs_ ABSL_GUARDED_BY(mutex_);  // hvdd's, mapped where a call needs them
  StateFiles own_ ABSL_GUARDED_BY(mutex_);
  CommitBook book_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> newest_{0};
};

}  // namespace hvd::rt
