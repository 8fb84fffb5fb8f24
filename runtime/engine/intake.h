// SPDX-License-Identifier: Apache-2.0
// How a request comes in, directly or on the board, alone or as a group; and what follows when one
// is over. Under the engine's lock.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/board_way.h"
#include "runtime/engine/departure.h"
#include "runtime/engine/direct/direct_way.h"
#include "runtime/engine/executor_role.h"
#include "runtime/engine/pairs.h"
#include "runtime/engine/pending/pending_requests.h"
#include "runtime/engine/watch/work_notes.h"

namespace hvd {

// AlreadyExists: the name of `request` is pending.
absl::Status StillPending(const Request& request);

// There was no memory for a request: it was not submitted, and everything is as before. Internal;
// copies need no memory.
const absl::Status& OutOfMemory();
// The epoch has ended, and there is no memory to say why: later calls do. Aborted; likewise.
const absl::Status& EndedWordless();
// The symptom of that: short enough to be a string without memory.
inline constexpr char kNoMemory[] = "out of memory";

// All borrowed.
struct IntakeParts {
  EpochWorld* world = nullptr;
  ExecutorRole* role = nullptr;
  PendingRequests* pending = nullptr;
  DirectWay* direct = nullptr;
  BoardWay* board = nullptr;
  Pairs* pairs = nullptr;
  Departure* departure = nullptr;
  WorkNotes* notes = nullptr;
};

class Intake {
 public:
  explicit Intake(const IntakeParts& parts) : parts_(parts) {}

  // An error means that it was not submitted: AlreadyExists for a name that is pending,
  // OutOfMemory, Aborted when the epoch is broken.
  absl::Status Submit(Request* request, bool caller_waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Engine::SubmitGroup.
  absl::Status SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // Its status is set: it is done and has finished. A request that waited for its turn may be
  // marked (SubmitDeferred).
  void Complete(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // The same, but a device has it: it finishes later.
  void CompleteLaunched(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // The requests of a run have finished.
  void NoteFinished(const LaunchedRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Unnamed requests whose turn has become free, in their order.
  void SubmitDeferred() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Not all ranks can go directly: this one asks the board like them, where there is room for what
  // was marked directly.
  absl::Status FallBack(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

 private:
  absl::Status Enter(Request* request, bool caller_waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status EnterPair(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  static void NameOthers(const Request& first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status Withdraw(Request* request, const std::exception& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status Prepare(LocalName* name, const Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status Mark(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  absl::Status MarkOnBoard(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void UndoComes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  const IntakeParts parts_;
};

}  // namespace hvd
