// SPDX-License-Identifier: Apache-2.0
// How requests go directly: who has a number, what is marked and watched, and what the executor
// does when all have marked (direct.h says what a mark is).
//
// A request that goes directly is marked by its submitter, under the engine's lock, then watched by
// the executor. Two kinds: a small one brings its tensor beside its mark, and is over as soon as
// all have marked; one in place says where its tensor lies, each rank does its part
// (direct_in_place) and says so, and it is over when all have.
#pragma once

#include "runtime/engine/direct/direct.h"
#include "runtime/engine/direct/direct_watch.h"
#include "runtime/engine/direct/in_place.h"
#include "runtime/engine/direct/numbered_names.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/watch/work_notes.h"
#include "runtime/transport/waiter.h"

namespace hvd::rt {

// All borrowed.
struct DirectParts {
  Direct* direct = nullptr;  // null in a set of several hosts: then nothing goes directly
  Board* board = nullptr;    // where a name with a number keeps room
  Waiter* waiter = nullptr;
  HostCollectives* on_host = nullptr;
  const TensorPlaces* places = nullptr;
  WorkNotes* notes = nullptr;
};

class DirectWay {
 public:
  explicit DirectWay(const DirectParts& parts);

  bool exists() const { return parts_.direct != nullptr; }

  // A name that is asked for has its ticket afterwards, if there is one for it.
  void FindNumber(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Whether its pending request, which goes by the board now, could go directly had it a number.
  bool WantsNumber(const LocalName& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Takes from the log what became of a use by the board, on every rank: whether the name has a
  // number from now on, and how its next use goes. `submissions`: this rank's until now.
  void TakeNumber(const LogEntry& entry, LocalName* name, uint64_t submissions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // What is marked and watched. A mark needs room there before it is published.
  DirectWatch& watch() { return watch_; }
  // Marks the pending request. False: it goes by the board, and the others can see that.
  bool Mark(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // Whether what this rank has marked directly waits for nobody else: all have marked it and, where
  // this rank has done its part, done theirs.
  bool IsAgreed(const LocalName& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return name.direct.marked && LookAt(name) == Direct::Seen::kAllSame;
  }

  // This rank joins: it marks nothing more until the round that comes. Its marks stay. `turns`: of
  // the unnamed calls, that were ever taken.
  void BeginJoin(uint32_t turns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);  // … or has joined
  void NextRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { ++round_; }

  // Whether Step would find something to do.
  bool IsReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // The outcome of a step; `name`'s request is the one that the step was about.
  struct Outcome {
    enum class Kind {
      kNothing,    // there was nothing to do
      kWorked,     // this rank has done its part; the others' is still missing
      kFinished,   // the request is over, with its status
      kFellBack,   // not all can go directly: this rank must mark it on the board like them
      kEpochEnds,  // fault() says why: the others count on what this rank cannot do
    } kind = Kind::kNothing;
    LocalName* name = nullptr;
  };
  const absl::Status& fault() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { return fault_; }
  Outcome Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // A small request of a thread that waits for it and for nothing else, in an engine that has
  // nothing else to do. When the others come within a few looks, what is left of the call takes
  // less than to leave the lock, take the role and come back.
  bool MayEndAtOnce(const Request& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock, kExecutor);
  // kNothing: they have not come.
  Outcome EndAtOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock, kExecutor);

  // From so many bytes on what is copied goes past the caches.
  void set_stream_bytes(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    in_place_.set_stream_bytes(bytes);
  }

 private:
  Direct::Seen LookAt(const LocalName& name) const;
  Outcome Run(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  Outcome WorkInPlace(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void FinishInPlace(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const DirectParts parts_;
  InPlace in_place_;
  uint64_t round_ ABSL_GUARDED_BY(kEngineLock) = 0;  // joins completed
  NumberedNames numbered_ ABSL_GUARDED_BY(kEngineLock);
  DirectWatch watch_;
  absl::Status fault_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd::rt
