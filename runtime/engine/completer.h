// SPDX-License-Identifier: Apache-2.0
// Ends requests: wakes who waits for them, tells their observers, and marks what waited for its
// turn.
//
// Threads: the executor's.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/execution/unfinished.h"
#include "runtime/engine/intake.h"

namespace hvd {

// All borrowed.
struct CompleterParts {
  EpochWorld* world = nullptr;
  ExecutorRole* role = nullptr;
  PendingRequests* pending = nullptr;
  DirectWay* direct = nullptr;
  Pairs* pairs = nullptr;
  Departure* departure = nullptr;
  Intake* intake = nullptr;
};

class Completer {
 public:
  explicit Completer(const CompleterParts& parts) : parts_(parts) {}

  enum class Over {
    kFinished,
    kLastWork,  // … and there is nothing left to do for the one who has the role for one of these
    kLaunched,  // done; a device finishes them later (NoteFinished)
  };
  // Their status is set. After this the submitters may free them.
  void Complete(absl::Span<Request* const> requests, Over how = Over::kFinished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // A device has finished these: whoever drains may go on.
  void NoteFinished(absl::Span<const Unfinished::Ended> runs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // All that are pending end with `status`, and nobody drains any more.
  void CompleteAll(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

 private:
  void TellEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const CompleterParts parts_;
};

}  // namespace hvd
