// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/completer.h"

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/transport/unreached.h"

namespace hvd::rt {

// Only those who wait for the role need a wake-up; the one who runs this as waiter sees `done`
// itself.
void Completer::Complete(absl::Span<Request* const> requests, Over how) {
  bool notify = false, marks = false, tells = false;
  {
    ExecutorRole::Lock lock(place_.role);
    marks = intake_.pending().has_deferred();
    for (Request* request : requests) {
      if (how == Over::kLastWork) place_.role->EndWith(request);
      if (how != Over::kLaunched) {
        End(request);
      } else {
        EndLaunched(request);
      }
    }
    if (marks) MarkDeferred();
    notify = place_.role->waiting() > 0;
    tells = ended_ != nullptr;
  }
  if (marks) place_.world->waiter().Ring();
  if (notify) place_.role->NotifyAll();
  if (tells) TellEnded();
}

void Completer::End(Request* request) {
  intake_.departure().Ended(*request);
  intake_.pending().Remove(request);
  place_.notes->CountCall();
  place_.notes->Count({intake_.pending().count(), place_.role->callers()});
  SetDone(request);
}

void Completer::EndLaunched(Request* request) {
  intake_.departure().Ended(*request);
  intake_.pending().Launched(request);
  place_.notes->Count({intake_.pending().count(), place_.role->callers()});
  SetDone(request);
}

// The last of each request: whoever waits may free it, but for those whose observers are still to
// be told.
void Completer::SetDone(Request* request) {
  if (request->observer != nullptr) request->course.next_ended = std::exchange(ended_, request);
  request->done.store(true, std::memory_order_release);
}

// In their order.
void Completer::MarkDeferred() {
  while (Request* request = intake_.pending().TakeDeferred()) {
    try {
      if (absl::Status marked = intake_.MarkDeferred(request); !marked.ok()) {
        request->result.status = marked;
        End(request);
      }
    } catch (const std::bad_alloc& error) {
      // The others wait for its turn. The executor ends what is pending.
      return place_.world->board().AbortThrown(error, *request->course.local->name);
    }
  }
}

void Completer::NoteFinished(absl::Span<const Unfinished::Ended> runs) {
  {
    ExecutorRole::Lock lock(place_.role);
    for (const Unfinished::Ended& one : runs) {
      for (const LaunchedTensor& tensor : one.run.tensors) {
        intake_.pending().Finished(tensor.sequence);
        place_.notes->CountCall();
      }
    }
  }
  place_.role->NotifyAll();
}

// Takes those whose observers are to be told, in the order in which they ended: the oldest, and the
// next in next_ended. The caller tells them without the lock, and then says so.
Request* Completer::TakeEnded() {
  if (ended_ == nullptr) return nullptr;
  Request* newest = std::exchange(ended_, nullptr);
  ++telling_;
  Request* oldest = nullptr;
  while (newest != nullptr) {
    Request* const before = std::exchange(newest->course.next_ended, oldest);
    oldest = std::exchange(newest, before);
  }
  return oldest;
}

void Completer::TellEnded() {
  Request* oldest = nullptr;
  {
    ExecutorRole::Lock lock(place_.role);
    oldest = TakeEnded();
  }
  if (oldest == nullptr) return;
  while (oldest != nullptr) {
    // It may be gone when its observer has been told.
    Request* const next = oldest->course.next_ended;
    oldest->observer->OnDone(oldest);
    oldest = next;
  }
  ExecutorRole::Lock lock(place_.role);
  --telling_;
  if (!is_telling() && intake_.departure().leave_begun()) place_.role->NotifyAll();
}

void Completer::EndBroken(Request* request) {
  // First: whoever waits for `request` may free all of them when it is done.
  for (const auto& other : request->course.others) EndBroken(other.get());
  request->result.status = intake_.pending().broken();
  SetDone(request);
}

// Needs no memory: there may be none.
void Completer::CompleteAll(const absl::Status& status) {
  const auto end = [this](Request* request) {
    kEngineLock.AssertHeld();
    EndBroken(request);
  };
  {
    ExecutorRole::Lock lock(place_.role);
    intake_.pending().Break(status, end);
    intake_.ways().pairs().TakeAll(end);
    intake_.ways().direct().watch().ForgetNew();
  }
  place_.role->NotifyAll();
  TellEnded();
  intake_.ways().direct().watch().ForgetWatched();
}

void Completer::EndEpoch(const absl::Status& why) {
  Waiter& waiter = place_.world->waiter();
  Break(absl::IsAborted(why) ? why : waiter.EndEpoch(std::string(why.message()), UnreachedBy(why)));
}

void Completer::BreakThrown(const std::exception& error, std::string_view at_work) {
  place_.world->board().AbortThrown(error, at_work);
  absl::Status cause;
  try {
    // Another's abort may be half written: its words are the cause.
    cause = place_.world->waiter().EndEpoch(kNoMemory);
  } catch (const std::bad_alloc&) {
    cause = EndedWordless();
  }
  Break(cause);
}

// The executor found the epoch broken: a leader tells the other hosts, and everything pending ends.
// In this order: what is on its way between hosts is read from the users' memory, and written
// there, as long as the transport goes on, and so it is with the device; who hears of the end may
// free it.
void Completer::Break(const absl::Status& status) {
  EpochWorld& world = *place_.world;
  const HostPage& page = *world.page();
  const bool aborted = page.aborted.load(std::memory_order_acquire) != 0;
  try {
    if (aborted && world.leader() != nullptr) world.leader()->SpreadAbort(CauseOf(page));
  } catch (const std::bad_alloc&) {  // at the leave once more; and hvdd tells them when this ends
  }
  if (aborted) world.LetGo();
  AbortDevice(status);
  CompleteAll(status);
}

void Completer::AbortDevice(const absl::Status& status) {
  if (!device_.must_abort()) return;
  try {
    const absl::Status cause = place_.world->waiter().Check();
    device_.Abort(cause.ok() ? status : cause);
  } catch (const std::bad_alloc&) {
    device_.Abort(EndedWordless());
  }
}

}  // namespace hvd::rt
