// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/completer.h"

namespace hvd {

// Only those who wait for the role need a wake-up; the one who runs this as waiter sees `done`
// itself.
void Completer::Complete(absl::Span<Request* const> requests, Over how) {
  bool notify = false, marks = false, tells = false;
  {
    ExecutorRole::Lock lock(parts_.role);
    marks = parts_.pending->has_deferred();
    for (Request* request : requests) {
      if (how == Over::kLastWork) parts_.role->EndWith(request);
      if (how != Over::kLaunched) {
        parts_.intake->Complete(request);
      } else {
        parts_.intake->CompleteLaunched(request);
      }
    }
    if (marks) parts_.intake->SubmitDeferred();
    notify = parts_.role->waiting() > 0;
    tells = parts_.pending->has_ended();
  }
  if (marks) parts_.world->waiter().Ring();
  if (notify) parts_.role->NotifyAll();
  if (tells) TellEnded();
}

void Completer::NoteFinished(absl::Span<const Unfinished::Ended> runs) {
  {
    ExecutorRole::Lock lock(parts_.role);
    for (const Unfinished::Ended& one : runs) parts_.intake->NoteFinished(one.run);
  }
  parts_.role->NotifyAll();
}

void Completer::TellEnded() {
  Request* oldest = nullptr;
  {
    ExecutorRole::Lock lock(parts_.role);
    oldest = parts_.pending->TakeEnded();
  }
  if (oldest == nullptr) return;
  while (oldest != nullptr) {
    // It may be gone when its observer has been told.
    Request* const next = oldest->course.next_ended;
    oldest->observer->OnDone(oldest);
    oldest = next;
  }
  ExecutorRole::Lock lock(parts_.role);
  parts_.pending->HasTold();
  if (!parts_.pending->is_telling() && parts_.departure->leave_begun()) parts_.role->NotifyAll();
}

void Completer::CompleteAll(const absl::Status& status) {
  {
    ExecutorRole::Lock lock(parts_.role);
    parts_.pending->EndAll(status);
    parts_.pairs->TakeAll([this](Request* request) {
      kEngineLock.AssertHeld();
      parts_.pending->EndBroken(request);
    });
    parts_.direct->ForgetMarked();
  }
  parts_.role->NotifyAll();
  TellEnded();
  parts_.direct->ForgetWatched();
}

}  // namespace hvd
