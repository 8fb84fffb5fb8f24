// SPDX-License-Identifier: Apache-2.0
// How a rank joins and leaves: what it may still submit, what it owes the others, and what it tells
// them of that.
//
// It joins at once, whatever of its own is pending. A pending request that it has marked directly,
// or has not marked because its turn is taken, may still have to go to the board: the rank owes it
// there, and is ready with neutral values for everything else. It leaves in order with all others,
// or its leaving ends the epoch.
#pragma once

#include "absl/status/status.h"
#include "runtime/engine/pending/pending_requests.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/ways.h"

namespace hvd::rt {

// The error of requests that end, or are submitted, after this rank's leave.
inline constexpr char kHasLeft[] = "this rank has called shutdown";

class Departure {
 public:
  // All borrowed.
  Departure(EpochWorld* world, PendingRequests* pending, Ways* ways)
      : world_(*world), pending_(*pending), ways_(*ways) {}

  // The others would not all see a direct mark of this rank's.
  bool is_away() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return joining_ != nullptr || leaving_;
  }
  bool has_joined() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return joining_ != nullptr; }
  // Why an away rank submits nothing.
  absl::Status Refuse(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // Marks the join that is pending under `name`.
  absl::Status Join(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // One is over that was pending when this rank joined or left, or the join itself: then a new
  // round of direct marks and of unnamed calls begins.
  void Ended(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    if (is_away()) EndedAway(request);
  }

  // The leave's request, to be submitted once; null: it has been.
  Request* BeginLeave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Notes the status of that submission: nothing more is submitted. An error that is returned is
  // told nobody yet: EndUnleft.
  absl::Status LeaveSubmitted(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  bool leave_begun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) { return leave_begun_; }
  // A rank that cannot leave with the others must not let them wait for it, nor its own threads.
  void EndUnleft(const absl::Status& why) const;
  // Once BeginLeave has returned, whoever called it.
  Request* leave() { return &leave_; }
  absl::Status leave_submitted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return leave_submitted_;
  }

 private:
  void EndedAway(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void NoteLeft() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  EpochWorld& world_;
  PendingRequests& pending_;
  Ways& ways_;
  Request* joining_ ABSL_GUARDED_BY(kEngineLock) = nullptr;  // this rank's join
  bool leaving_ ABSL_GUARDED_BY(kEngineLock) = false;        // its leave is marked
  Request leave_;
  bool leave_begun_ ABSL_GUARDED_BY(kEngineLock) = false;
  absl::Status leave_submitted_ ABSL_GUARDED_BY(kEngineLock);
};

}  // namespace hvd::rt
