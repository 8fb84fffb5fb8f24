// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/intake.h"

#include <exception>
#include <new>
#include <string>

#include "base/printable.h"

namespace hvd::rt {

absl::Status StillPending(const Request& request) {
  return absl::AlreadyExistsError("tensor " + ShownName(request.name) +
                                  " is already pending on this rank; wait for it before "
                                  "submitting the same name again");
}

const absl::Status& OutOfMemory() {
  static const auto* const status =
      new absl::Status(absl::InternalError("out of memory; nothing was submitted"));
  return *status;
}

const absl::Status& EndedWordless() {
  static const auto* const status =
      new absl::Status(absl::AbortedError("the epoch has ended, and this rank is out of memory"));
  return *status;
}

absl::Status Intake::Submit(Request* request, bool caller_waits) {
  if (!pending_.broken().ok()) return pending_.broken();
  request->course.local = nullptr;
  try {
    return Enter(request, caller_waits);
  } catch (const std::bad_alloc& error) {
    return Withdraw(request, error);
  }
}

// There was no memory for it. As if it had never come, unless others know already that it has.
absl::Status Intake::Withdraw(Request* request, const std::exception& error) {
  LocalName* name = request->course.local;
  if (name == nullptr) return OutOfMemory();
  if (request->unnamed) pending_.names().GiveTurnBack();
  if (name->pending != request) return OutOfMemory();
  name->pending = nullptr;
  NoteCounts();
  const bool told =
      request->signature.kind == RequestKind::kJoin || name->direct.ticket.number != 0;
  if (!told) return OutOfMemory();
  place_.world->board().AbortThrown(error, *name->name);
  try {
    return place_.world->waiter().EndEpoch(kNoMemory);  // as Executor::BreakThrown
  } catch (const std::bad_alloc&) {  // not even for the words; later calls say them
  }
  return OutOfMemory();
}

void Intake::NoteCounts() { place_.notes->Count({pending_.count(), place_.role->callers()}); }

absl::Status Intake::Enter(Request* request, bool caller_waits) {
  if (departure_.is_away()) return departure_.Refuse(*request);
  if (IsPair(request->signature.kind)) return EnterPair(request);
  LocalName* name = pending_.names().FindFor(*request);
  request->course.local = name;
  NameOthers(*request);
  if (!name->prepared) {
    if (absl::Status prepared = ways_.Prepare(name, *request); !prepared.ok()) {
      if (request->unnamed) pending_.names().GiveTurnBack();
      return prepared;
    }
  }
  request->course.sequence = pending_.NextSequence();
  name->distance = request->course.sequence - name->last_use;
  name->last_use = request->course.sequence;
  request->course.submitted_ns = place_.notes->Stamp();
  if (pending_.MustWait(*request, *name)) {
    pending_.Defer(request);
    return absl::OkStatus();
  }
  if (name->pending != nullptr) return StillPending(*request);
  ways_.direct().watch().MakeRoom();
  name->pending = request;
  place_.notes->Comes(*request, {pending_.count(), place_.role->callers() + caller_waits});
  if (absl::Status marked = Mark(name); !marked.ok()) {
    name->pending = nullptr;
    NoteCounts();
    return marked;
  }
  pending_.Add();
  return absl::OkStatus();
}

// Before anybody can see the first.
void Intake::NameOthers(const Request& first) {
  for (const auto& other : first.course.others) {
    other->unnamed = false;
    other->name = NamePart(*first.course.local->name, other->signature.dtype);
  }
}

absl::Status Intake::EnterPair(Request* request) {
  request->course.sequence = pending_.submissions() + 1;
  ways_.pairs().Submit(request);
  (void)pending_.NextSequence();
  place_.notes->Comes(*request, {pending_.count(), place_.role->callers()});
  pending_.Add();
  return absl::OkStatus();
}

absl::Status Intake::SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests) {
  Request& first = *requests.front();
  first.course.others = requests.subspan(1);
  absl::Status status = Submit(&first, false);
  if (!status.ok()) return status;
  for (const auto& other : first.course.others) {
    RequestCourse& course = other->course;
    course.sequence = pending_.NextSequence();
    course.submitted_ns = first.course.submitted_ns;
    course.local = first.course.local;
    course.is_other = true;
    pending_.Add();
  }
  NoteCounts();
  return absl::OkStatus();
}

absl::Status Intake::Mark(LocalName* name) {
  if (name->pending->signature.kind == RequestKind::kJoin) return departure_.Join(name);
  return ways_.Mark(name, departure_.is_away());
}

}  // namespace hvd::rt
