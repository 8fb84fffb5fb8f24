// SPDX-License-Identifier: Apache-2.0
// How a request comes in, alone or as a group; owns what this rank has submitted, the ways that it
// goes, and whether the rank may submit at all. Under the engine's lock.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/departure.h"
#include "runtime/engine/executor_role.h"
#include "runtime/engine/pending/pending_requests.h"
#include "runtime/engine/watch/work_notes.h"
#include "runtime/engine/ways.h"

namespace hvd::rt {

// AlreadyExists: the name of `request` is pending.
absl::Status StillPending(const Request& request);

// There was no memory for a request: it was not submitted, and everything is as before. Internal;
// copies need no memory.
const absl::Status& OutOfMemory();
// The epoch has ended, and there is no memory to say why: later calls do. Aborted; likewise.
const absl::Status& EndedWordless();
// The symptom of that: short enough to be a string without memory.
inline constexpr char kNoMemory[] = "out of memory";

// Where the parts of an engine stand: the epoch, the lock and the role, and who is told of what
// they do. All are borrowed and outlive them.
struct EnginePlace {
  EpochWorld* world = nullptr;
  ExecutorRole* role = nullptr;
  WorkNotes* notes = nullptr;
};

class Intake {
 public:
  explicit Intake(const EnginePlace& place)
      : place_(place),
        ways_(place.world, place.notes),
        departure_(place.world, &pending_, &ways_) {}

  // These say by their annotations who may touch them.
  PendingRequests& pending() { return pending_; }
  Ways& ways() { return ways_; }
  Departure& departure() { return departure_; }

  // An error means that it was not submitted: AlreadyExists for a name that is pending,
  // OutOfMemory, Aborted when the epoch is broken.
  absl::Status Submit(Request* request, bool caller_waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Engine::SubmitGroup.
  absl::Status SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // An unnamed request whose turn has become free (PendingRequests::TakeDeferred). An error: it is
  // over. Throws without memory: then others wait for it, and the epoch must end.
  absl::Status MarkDeferred(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    ways_.direct().watch().MakeRoom();
    return Mark(request->course.local);
  }
  // As Ways::FallBack.
  absl::Status FallBack(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return ways_.FallBack(name, departure_.is_away());
  }

 private:
  absl::Status Enter(Request* request, bool caller_waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status EnterPair(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  static void NameOthers(const Request& first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status Withdraw(Request* request, const std::exception& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status Mark(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void NoteCounts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  const EnginePlace place_;
  PendingRequests pending_;
  Ways ways_;
  Departure departure_;
};

}  // namespace hvd::rt
